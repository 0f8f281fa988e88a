//! The fetcher against local web servers and a local DNS server. 127.0.0.2 represents the public network: the operator
//! allows it, and no other address of this machine.

#[cfg(test)]
mod cache;
#[cfg(test)]
mod dns;
#[cfg(test)]
mod guarded;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod site;
#[cfg(test)]
mod support;
