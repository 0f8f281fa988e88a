mod outcome;
mod strict;
mod tolerant;
