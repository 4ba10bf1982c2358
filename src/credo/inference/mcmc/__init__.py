"""Markov chains on the whole data: Metropolis, Hamiltonian dynamics, tempering."""
