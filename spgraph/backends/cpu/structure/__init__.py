"""Operations on the structure of matrices: extract, transpose, Kronecker products."""
