//! Links to the machines of workers.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use super::choice::{Arrived, Choice};
use crate::exec::LinkReport;
use crate::sync::Locked;
use crate::wire::parcel::Packing;

/// Policy for packing blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Compress {
    /// Pack if the link to another machine is slower than packing.
    #[default]
    Auto,
    Never,
    /// Pack all blocks, including blocks of workers on this machine.
    Always,
}

/// Settings that are known before any link exists.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkOptions {
    pub(crate) compress: Compress,
    /// Name of this machine, as engines report it to workers.
    pub(crate) home: String,
}

/// Links by the machine at their other end.
#[derive(Debug, Default)]
pub(super) struct Links {
    options: LinkOptions,
    links: Mutex<BTreeMap<String, Link>>,
}

#[derive(Debug, Default)]
struct Link {
    choice: Choice,
    raw: u64,
    wire: u64,
    blocks: u64,
    packed: u64,
}

impl Links {
    pub(super) fn new(options: LinkOptions) -> Self {
        Self { options, links: Mutex::default() }
    }

    pub(super) fn compress(&self) -> Compress {
        self.options.compress
    }

    /// Returns the packing for the next answer of a worker on `node`.
    pub(super) fn next(&self, node: &str) -> Packing {
        match self.options.compress {
            Compress::Never => Packing::Plain,
            Compress::Always => Packing::Lz4,
            Compress::Auto if node == self.options.home => Packing::Plain,
            Compress::Auto => self.with(node, |link| link.choice.next()),
        }
    }

    pub(super) fn arrived(&self, node: &str, block: &Arrived) {
        self.with(node, |link| {
            link.choice.arrived(block);
            link.raw = link.raw.saturating_add(block.raw);
            link.wire = link.wire.saturating_add(block.wire);
            link.blocks += 1;
            link.packed += u64::from(block.wire < block.raw);
        });
    }

    pub(super) fn unpacked(&self, node: &str, packing: Packing, raw: u64, took: Duration) {
        self.with(node, |link| link.choice.unpacked(packing, raw, took));
    }

    fn with<R>(&self, node: &str, change: impl FnOnce(&mut Link) -> R) -> R {
        let mut links = self.links.locked();
        match links.get_mut(node) {
            Some(link) => change(link),
            None => change(links.entry(node.to_owned()).or_default()),
        }
    }

    /// Returns the traffic over each link so far, and the reason for its packing.
    pub(super) fn reports(&self) -> Vec<LinkReport> {
        let links = self.links.locked();
        let report = |(host, link): (&String, &Link)| LinkReport {
            host: host.clone(),
            raw_bytes: link.raw,
            wire_bytes: link.wire,
            blocks: link.blocks,
            packed_blocks: link.packed,
            bytes_per_s: link.choice.speed(),
            why: self.why(host, &link.choice),
        };
        links.iter().map(report).collect()
    }

    fn why(&self, node: &str, choice: &Choice) -> String {
        let speed = choice.speed().map(|speed| format!("the link gives {}", per_second(speed)));
        match (self.options.compress, speed) {
            (Compress::Never, None) => "never packed, as requested".to_owned(),
            (Compress::Never, Some(speed)) => format!("never packed, as requested; {speed}"),
            (Compress::Always, None) => "always packed, as requested".to_owned(),
            (Compress::Always, Some(speed)) => format!("always packed, as requested; {speed}"),
            (Compress::Auto, _) if node == self.options.home => "not packed: blocks are viewed in place".to_owned(),
            (Compress::Auto, None) => "not packed: no block took long enough to measure the link".to_owned(),
            (Compress::Auto, Some(speed)) => match choice.best {
                Packing::Plain => format!("{speed}, and packing would take longer than it saves"),
                Packing::Narrow => format!("{speed}, so integers are narrowed"),
                Packing::Lz4 => format!("{speed}, so integers are narrowed, and the rest is compressed with LZ4"),
            },
        }
    }
}

/// Formats a link speed with decimal units.
fn per_second(bytes: f64) -> String {
    let (value, unit) = match bytes {
        bytes if bytes >= 1e9 => (bytes / 1e9, "GB/s"),
        bytes if bytes >= 1e6 => (bytes / 1e6, "MB/s"),
        bytes => (bytes / 1e3, "kB/s"),
    };
    let decimals = usize::from(value < 10.0);
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(compress: Compress) -> Links {
        Links::new(LinkOptions { compress, home: "here".to_owned() })
    }

    fn arrived(packing: Packing, wire: u64, took: u64) -> Arrived {
        let (packed_in, took) = (Duration::from_millis(1), Some(Duration::from_millis(took)));
        Arrived { raw: 8_000_000, wire, packing, packed_in, took }
    }

    #[test]
    fn each_link_is_chosen_for_by_itself_and_says_why() {
        let links = links(Compress::Auto);
        for _ in 0..20 {
            links.arrived("slow", &arrived(Packing::Plain, 8_000_000, 320));
            links.arrived("fast", &arrived(Packing::Plain, 8_000_000, 1));
            links.arrived("here", &arrived(Packing::Plain, 8_000_000, 1));
            for host in ["slow", "fast"] {
                links.arrived(host, &Arrived { took: None, ..arrived(Packing::Narrow, 4_000_000, 0) });
            }
        }
        let ways = |node: &str| [0; 20].map(|_| links.next(node));
        assert!(ways("slow").contains(&Packing::Narrow));
        assert_eq!(ways("here"), [Packing::Plain; 20]);
        let reports = links.reports();
        let why: Vec<_> = reports.iter().map(|link| (&*link.host, &*link.why)).collect();
        assert_eq!(
            why,
            [
                ("fast", "the link gives 8.0 GB/s, and packing would take longer than it saves"),
                ("here", "not packed: blocks are viewed in place"),
                ("slow", "the link gives 25 MB/s, so integers are narrowed"),
            ]
        );
        let slow = &reports[2];
        assert_eq!((slow.raw_bytes, slow.wire_bytes), (320_000_000, 240_000_000));
        assert_eq!((slow.blocks, slow.packed_blocks), (40, 20));
    }

    #[test]
    fn what_was_asked_for_holds_everywhere() {
        for (compress, packing, word) in
            [(Compress::Never, Packing::Plain, "never"), (Compress::Always, Packing::Lz4, "always")]
        {
            let links = links(compress);
            assert_eq!([links.next("here"), links.next("there")], [packing; 2]);
            links.arrived("here", &arrived(packing, 8_000_000, 400));
            let report = &links.reports()[0];
            assert_eq!(report.why, format!("{word} packed, as requested; the link gives 20 MB/s"));
        }
    }
}
