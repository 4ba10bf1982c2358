"""Architectures as their papers and torchvision define them, in plain PyTorch, with a width and depth to choose."""
