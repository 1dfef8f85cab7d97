"""The least fixed point of x = x (+) x (+.x) A: on one GPU, on peers, in rounds."""
