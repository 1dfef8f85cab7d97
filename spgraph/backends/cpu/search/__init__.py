"""The masked level iteration: on one GPU, on peers, in rounds."""
