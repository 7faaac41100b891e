//! Addresses to listen at.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

use crate::error::{Error, Result};

/// Parses `HOST:PORT`, or a port alone, which is one of this machine's own.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) for what is neither, and for a host that is not known.
pub(super) fn parse(text: &str) -> Result<SocketAddr> {
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let help = "an address and a port are needed, such as 127.0.0.1:9464, or a port alone; 0.0.0.0:9464 is open to other machines";
    let none = |why: String| Error::config(format!("`{text}` is no address to listen at: {why}")).help(help);
    let found = text.to_socket_addrs().map_err(|e| none(e.to_string()))?.next();
    found.ok_or_else(|| none("the host has no address".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_this_machine() {
        for text in ["9464", ":9464", "127.0.0.1:9464"] {
            assert_eq!(parse(text).unwrap().to_string(), "127.0.0.1:9464");
        }
        assert_eq!(parse("[::1]:80").unwrap().to_string(), "[::1]:80");
        assert_eq!(parse("0.0.0.0:80").unwrap().to_string(), "0.0.0.0:80");
        for text in ["", "70000", "127.0.0.1", "a b:1", "127.0.0.1:x"] {
            let error = parse(text).unwrap_err();
            assert!(
                error.message().contains(&format!("`{text}` is no address")) && error.help_text().is_some(),
                "{error}"
            );
        }
    }
}
