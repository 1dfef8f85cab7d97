"""The methods of Matrix and Vector, by subject: each module holds a base class of both."""
