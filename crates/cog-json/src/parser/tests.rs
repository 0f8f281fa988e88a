mod forms;
mod outcome;
mod strict;
mod tolerant;
