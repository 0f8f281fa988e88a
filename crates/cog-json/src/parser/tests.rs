mod strict;
mod told;
