"""Operations that move entries: extract, transpose, Kronecker products."""
