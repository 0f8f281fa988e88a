mod strict;
mod told;
mod tolerant;
