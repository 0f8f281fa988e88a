//! Tests of complete calls, against a mock and against recordings.

#[cfg(test)]
mod cassettes;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod http;
#[cfg(test)]
mod media;
#[cfg(test)]
mod network;
#[cfg(test)]
mod storm;
#[cfg(test)]
mod support;
