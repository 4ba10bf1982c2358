"""From a model and data to a posterior: `fit`, the methods, and the engine that runs them."""
