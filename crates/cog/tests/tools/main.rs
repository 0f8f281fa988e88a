//! The program together with others that its users have: shells, jq, git, curl, man.

#[cfg(unix)]
#[cfg(test)]
mod examples;
#[cfg(unix)]
#[cfg(test)]
mod shells;
