//! The program together with other tools: shells, jq, git, curl, wget, man, exiftool, ImageMagick, npm, MCP servers,
//! nats-server, validators of skills, A2A and OpenAPI.

#[cfg(target_os = "linux")]
#[cfg(test)]
mod disk;
#[cfg(unix)]
#[cfg(test)]
mod editors;
#[cfg(unix)]
#[cfg(test)]
mod examples;
#[cfg(unix)]
#[cfg(test)]
mod exports;
#[cfg(unix)]
#[cfg(test)]
#[path = "../cli/golden.rs"]
mod golden;
#[cfg(unix)]
#[cfg(test)]
mod hidden;
#[cfg(unix)]
#[cfg(test)]
mod install;
#[cfg(unix)]
#[cfg(test)]
mod mcp;
#[cfg(unix)]
#[cfg(test)]
mod mcp_odd;
#[cfg(unix)]
#[cfg(test)]
mod mcp_serve;
#[cfg(unix)]
#[cfg(test)]
mod media_run;
#[cfg(unix)]
#[cfg(test)]
mod metadata;
#[cfg(unix)]
#[cfg(test)]
mod nats;
#[cfg(unix)]
#[cfg(test)]
mod pages;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod review;
#[cfg(unix)]
#[cfg(test)]
mod sarif;
#[cfg(unix)]
#[cfg(test)]
mod scene;
#[cfg(unix)]
#[cfg(test)]
mod shells;
#[cfg(unix)]
#[cfg(test)]
mod telemetry;
