//! Tests of the wire forms: requests as sent and replies as received. The files are in `tests/wire`.

#[cfg(test)]
mod batches;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod responses;
#[cfg(test)]
mod splits;
#[cfg(test)]
mod tools;
