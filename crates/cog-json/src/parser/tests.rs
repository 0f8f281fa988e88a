mod drafts;
mod forms;
mod outcome;
mod search;
mod strict;
mod tolerant;
mod wrapper;
