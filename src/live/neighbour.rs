//! Users at the other end of connections within this machine.

use std::net::TcpStream;

/// Returns true if the other end of a local connection belongs to the user of this process or to root. Returns false if
/// the system does not report the user.
#[cfg(target_os = "linux")]
pub(super) fn is_same_user(stream: &TcpStream) -> bool {
    use std::os::unix::fs::MetadataExt;

    let own = std::fs::metadata("/proc/self").map(|process| process.uid());
    linux::user_of(stream).zip(own.ok()).is_some_and(|(user, own)| user == own || user == 0)
}

/// Returns true, because the user is not available on this platform.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_same_user(_: &TcpStream) -> bool {
    true
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::{BufRead, BufReader};
    use std::net::{IpAddr, SocketAddr, TcpStream};

    /// Returns the user of the other end, from the kernel's table of sockets.
    pub(super) fn user_of(stream: &TcpStream) -> Option<u32> {
        let (own, other) = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
        let table = if own.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
        // Every read scans the kernel's whole table, which takes more than a millisecond. Reads are therefore large,
        // and stop at the matching row.
        user_in(BufReader::with_capacity(READ, File::open(table).ok()?), other, own)
    }

    /// Bytes of the table per read: about 400 rows.
    const READ: usize = 64 << 10;

    /// Returns the user of the socket at `from` that is connected to `to`. The table has Linux's format
    /// (`Documentation/networking/proc_net_tcp`).
    pub(super) fn user_in(table: impl BufRead, from: SocketAddr, to: SocketAddr) -> Option<u32> {
        let (from, to) = (written(from), written(to));
        table.lines().map_while(Result::ok).find_map(|line| {
            let mut row = line.split_whitespace();
            let ends = (row.nth(1)?, row.next()?);
            if ends == (from.as_str(), to.as_str()) { row.nth(4)?.parse().ok() } else { None }
        })
    }

    /// Formats an address as in the table: hexadecimal words in the machine's byte order.
    fn written(address: SocketAddr) -> String {
        let ip: String = match address.ip() {
            IpAddr::V4(ip) => word(ip.octets()),
            IpAddr::V6(ip) => ip.octets().as_chunks::<4>().0.iter().copied().map(word).collect(),
        };
        format!("{ip}:{:04X}", address.port())
    }

    fn word(bytes: [u8; 4]) -> String {
        format!("{:08X}", u32::from_ne_bytes(bytes))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{SocketAddr, TcpListener};

    use super::*;

    #[test]
    fn the_other_end_is_found_among_others() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                eprintln!("skipped: nobody can listen at {address}");
                continue;
            };
            let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, _) = listener.accept().unwrap();
            assert!(is_same_user(&stream));
        }
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn users_are_read_out_of_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:24F8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1\n   \
            1: 0100007F:24F8 0100007F:D2F0 01 00000000:00000000 00:00000000 00000000  1000        0 2 1\n   \
            2: 0100007F:D2F0 0100007F:24F8 01 00000000:00000000 00:00000000 00000000  1007        0 3 1\n";
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(linux::user_in(table.as_bytes(), at(0xD2F0), at(0x24F8)), Some(1007));
        assert_eq!(linux::user_in(table.as_bytes(), at(0x24F8), at(0xD2F0)), Some(1000));
        assert_eq!(linux::user_in(table.as_bytes(), at(1), at(0x24F8)), None);
        assert_eq!(linux::user_in("short\n".as_bytes(), at(1), at(2)), None);
    }
}
