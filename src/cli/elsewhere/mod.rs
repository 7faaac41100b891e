//! Workers on other machines, for commands. An engine outside this library starts them.

#[cfg(all(feature = "workers", target_os = "linux"))]
mod engine;

use crate::{Error, ErrorKind};

#[cfg(all(feature = "python", feature = "workers", target_os = "linux"))]
pub(crate) use engine::set_engine;
#[cfg(all(feature = "workers", target_os = "linux"))]
pub(crate) use engine::{Request, prepare};

/// Address of a Ray cluster in Ray's form: `auto`, `local`, or a host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cluster(pub(crate) String);

impl Cluster {
    /// Parses `ray://auto`, `ray://local` or `ray://HOST:PORT`.
    pub(crate) fn parse(text: &str) -> std::result::Result<Self, String> {
        let needed = || "a cluster is needed, such as ray://auto, ray://local or ray://HOST:PORT".to_owned();
        let address = text.strip_prefix("ray://").filter(|address| !address.is_empty()).ok_or_else(needed)?;
        let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        match address {
            "auto" | "local" => Ok(Self(address.to_owned())),
            _ if has_port => Ok(Self(address.to_owned())),
            _ => Err(format!("{}; `ray start --head` prints the port, 6379 by default", needed())),
        }
    }
}

/// Makes the error of a program that cannot reach a cluster.
#[cold]
pub(crate) fn no_engine() -> Error {
    Error::new(ErrorKind::Unsupported, "this program cannot reach a cluster of Ray").help(
        "the command of the Python package can: `pip install gristmill ray`, then `gristmill run … --on ray://auto`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_parsed() {
        for (text, address) in [
            ("ray://auto", "auto"),
            ("ray://local", "local"),
            ("ray://10.0.0.1:6379", "10.0.0.1:6379"),
            ("ray://[::1]:6379", "[::1]:6379"),
        ] {
            assert_eq!(Cluster::parse(text), Ok(Cluster(address.to_owned())));
        }
        for text in ["ray://", "auto", "ray://10.0.0.1", "ray://10.0.0.1:port", "slurm://auto"] {
            assert!(Cluster::parse(text).unwrap_err().contains("such as ray://auto"), "{text}");
        }
    }
}
