"""The functions of `numpy.linalg` and `numpy.fft`: imported when a tensor first meets one."""
