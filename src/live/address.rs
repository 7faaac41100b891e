//! Addresses to listen at.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

use crate::error::{Error, Result};

/// Prefix of an address at which all users of this machine get answers.
pub(super) const EVERYBODY: &str = "everybody@";

/// An address to listen at, and the users who get answers there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listening {
    pub(super) address: SocketAddr,
    /// True if users of this machine other than the user of this process get answers.
    pub(super) everybody: bool,
}

impl Listening {
    /// Parses `HOST:PORT`, or a port alone, which is a port on 127.0.0.1.
    ///
    /// The prefix [`EVERYBODY`] admits other users of this machine. Addresses outside loopback admit other users
    /// without it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `text` is neither, or if the host cannot be resolved.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (everybody, place) = match text.strip_prefix(EVERYBODY) {
            Some(place) => (true, place),
            None => (false, text),
        };
        let address = match place.trim_start_matches(':').parse::<u16>() {
            Ok(port) => (Ipv4Addr::LOCALHOST, port).into(),
            Err(_) => resolve(place)?,
        };
        Ok(Self { address, everybody: everybody || !address.ip().is_loopback() })
    }
}

fn resolve(text: &str) -> Result<SocketAddr> {
    let help = "an address and a port are needed, such as 127.0.0.1:9464, or a port alone; 0.0.0.0:9464 is open to other machines, everybody@9464 to all users of \
                this machine";
    let none = |why: String| Error::config(format!("`{text}` is no address to listen at: {why}")).help(help);
    let found = text.to_socket_addrs().map_err(|e| none(e.to_string()))?.next();
    found.ok_or_else(|| none("the host has no address".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_this_machine() {
        let parse = Listening::parse;
        let told = |text: &str| parse(text).map(|at| (at.address.to_string(), at.everybody)).unwrap();
        for text in ["9464", ":9464", "127.0.0.1:9464"] {
            assert_eq!(told(text), ("127.0.0.1:9464".to_owned(), false));
            assert_eq!(told(&format!("everybody@{text}")), ("127.0.0.1:9464".to_owned(), true));
        }
        assert_eq!(told("[::1]:80"), ("[::1]:80".to_owned(), false));
        assert_eq!(told("0.0.0.0:80"), ("0.0.0.0:80".to_owned(), true));
        for text in ["", "70000", "127.0.0.1", "a b:1", "127.0.0.1:x"] {
            let error = parse(text).unwrap_err();
            assert!(
                error.message().contains(&format!("`{text}` is no address")) && error.help_text().is_some(),
                "{error}"
            );
        }
    }
}
