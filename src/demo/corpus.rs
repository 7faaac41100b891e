//! Documents of log-normal length from a grammar of our own: as much text as asked for, the same for the same seed.

use std::io::{self, Write};

use super::grammar::{Grammar, SplitMix64};

/// Median length of a document.
pub const MEDIAN_BYTES: usize = 600;

/// The content of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Prose or code, in UTF-8.
    pub text: String,
    /// The subject: `mills`, `weather`, `machines`, `mathematics`, `code`, `letters`.
    pub source: &'static str,
}

/// An endless stream of documents, a function of the seed: median 600 bytes, log-normal with sigma 1.
#[derive(Clone, Debug)]
pub struct Documents {
    random: SplitMix64,
}

impl Documents {
    /// Starts the stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self { random: SplitMix64(seed) }
    }

    /// Replaces `text` by the next document and returns its source. Reusing `text` saves the allocation.
    pub fn next_into(&mut self, text: &mut String) -> &'static str {
        // Half a sentence is the mean overshoot.
        const HALF_SENTENCE: usize = 40;
        let grammar = Grammar::get();
        let kind = grammar.kind(&mut self.random);
        let length = log_normal(MEDIAN_BYTES, &mut self.random);
        text.clear();
        loop {
            grammar.sentence(kind, &mut self.random, text);
            if text.len() + HALF_SENTENCE >= length {
                return kind.name;
            }
            text.push_str(match (kind.lines, self.random.below(6)) {
                (true, _) => "\n",
                (false, 0) => "\n\n",
                (false, _) => " ",
            });
        }
    }
}

impl Iterator for Documents {
    type Item = Document;

    fn next(&mut self) -> Option<Document> {
        let mut text = String::new();
        let source = self.next_into(&mut text);
        Some(Document { text, source })
    }
}

/// The amount that [`write_jsonl`] wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Lines.
    pub documents: u64,
    /// Bytes, JSON included.
    pub bytes: u64,
}

/// Writes documents of `seed` as lines `{"text": …, "source": …}`, and stops after the first that reaches `bytes`.
///
/// # Errors
/// Those of `out`.
pub fn write_jsonl(out: &mut impl Write, bytes: u64, seed: u64) -> io::Result<Written> {
    const BLOCK: usize = 1 << 20;
    let mut documents = Documents::new(seed);
    let mut written = Written { documents: 0, bytes: 0 };
    let (mut text, mut block) = (String::new(), Vec::with_capacity(BLOCK + (BLOCK >> 3)));
    while written.bytes + (block.len() as u64) < bytes {
        let source = documents.next_into(&mut text);
        block.extend_from_slice(b"{\"text\": \"");
        escape(text.as_bytes(), &mut block);
        block.extend_from_slice(b"\", \"source\": \"");
        block.extend_from_slice(source.as_bytes());
        block.extend_from_slice(b"\"}\n");
        written.documents += 1;
        if block.len() >= BLOCK {
            out.write_all(&block)?;
            written.bytes += block.len() as u64;
            block.clear();
        }
    }
    out.write_all(&block)?;
    written.bytes += block.len() as u64;
    Ok(written)
}

/// Escapes what the grammar can produce: quotes, backslashes, newlines.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    let mut from = 0;
    for at in memchr::memchr3_iter(b'"', b'\\', b'\n', text) {
        out.extend_from_slice(&text[from..at]);
        out.extend_from_slice(match text[at] {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            _ => b"\\n",
        });
        from = at + 1;
    }
    out.extend_from_slice(&text[from..]);
}

/// `median * exp(z)` with `z` standard normal: the sum of twelve uniform numbers less six. Only additions and
/// multiplications, which every machine rounds alike; a library's `exp` differs between platforms.
fn log_normal(median: usize, random: &mut SplitMix64) -> usize {
    let sum: u64 = (0..6).map(|_| random.next()).map(|bits| (bits >> 32) + (bits & 0xffff_ffff)).sum();
    let z = sum as f64 / 4_294_967_296.0 - 6.0;
    let exp = (0..10).fold(1.0 + z / 1024.0, |x, _| x * x);
    (median as f64 * exp) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_json_and_depend_on_the_seed_alone() {
        let mut a = Vec::new();
        let written = write_jsonl(&mut a, 300_000, 5).unwrap();
        assert_eq!(written.bytes, a.len() as u64);
        assert!((300_000..340_000).contains(&a.len()));
        let mut documents = Documents::new(5);
        for line in a.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
            let value: serde_json::Value = serde_json::from_slice(line).unwrap();
            let document = documents.next().unwrap();
            assert_eq!(
                (value["text"].as_str(), value["source"].as_str()),
                (Some(&*document.text), Some(document.source))
            );
        }
        let mut b = Vec::new();
        write_jsonl(&mut b, 300_000, 6).unwrap();
        assert_ne!(a, b);
    }

    #[test]
    fn lengths_are_log_normal() {
        let mut lengths: Vec<_> = Documents::new(1).take(20_000).map(|d| d.text.len()).collect();
        lengths.sort_unstable();
        let at = |share: f64| lengths[(share * lengths.len() as f64) as usize] as f64;
        assert!((560.0..640.0).contains(&at(0.5)), "{}", at(0.5));
        let sigma = (at(0.8413) / at(0.5)).ln();
        assert!((0.9..1.1).contains(&sigma), "{sigma}");
    }

    #[test]
    fn the_text_never_changes() {
        // The demo's order hash and the embedded tokenizer depend on it.
        let mut out = Vec::new();
        write_jsonl(&mut out, 1 << 20, 0).unwrap();
        assert_eq!(format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&out)), "c8e651a0408a88b5");
    }
}
