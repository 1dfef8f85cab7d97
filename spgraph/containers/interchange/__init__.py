"""Objects of other libraries that stand for a Matrix: sparse tensors, graphs."""
