//! The guarded fetch against sites and a name server of the tests' own. 127.0.0.2 stands for the public network: the
//! operator allows it, and nothing else of this machine.

#[cfg(test)]
mod cache;
#[cfg(test)]
mod dns;
#[cfg(test)]
mod guarded;
#[cfg(test)]
mod site;
#[cfg(test)]
mod support;
