"""Functions of `scipy.signal` and `scipy.fft` that have derivatives."""
