//! Tests of whole commands: arguments, files and stdin in; stdout, stderr and exit code out.

#[cfg(test)]
mod about;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod batch;
#[cfg(test)]
mod cache;
#[cfg(test)]
mod calibrate;
#[cfg(test)]
mod cite;
#[cfg(test)]
mod composition;
#[cfg(test)]
mod compositions;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod conversation;
#[cfg(unix)]
#[cfg(test)]
mod docs;
#[cfg(test)]
mod doctor;
#[cfg(unix)]
#[cfg(test)]
mod evidence;
#[cfg(test)]
mod export;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod gate_of_evidence;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod handoff;
#[cfg(test)]
mod history;
#[cfg(unix)]
#[cfg(test)]
mod hostile;
#[cfg(unix)]
#[cfg(test)]
mod interrupted;
#[cfg(test)]
mod labels;
#[cfg(test)]
mod log_contents;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod mcp_http;
#[cfg(test)]
mod mcp_sign_in;
#[cfg(test)]
mod media;
#[cfg(test)]
mod media_check;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod media_limits;
#[cfg(test)]
mod media_read;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod modules;
#[cfg(test)]
mod optimize;
#[cfg(unix)]
#[cfg(test)]
mod review_model;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod schemas;
#[cfg(unix)]
#[cfg(test)]
mod serve;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod support;
#[cfg(test)]
mod test_import;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod traces;
#[cfg(unix)]
#[cfg(test)]
mod trust;
mod types;
#[cfg(test)]
mod verify;
#[cfg(test)]
#[cfg(feature = "nats")]
mod worker;
