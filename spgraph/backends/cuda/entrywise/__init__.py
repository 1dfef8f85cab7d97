"""Operations entry by entry, reductions, the masked write."""
