"""Functions of neural networks: activations, losses, normalisation, convolution, pooling."""
