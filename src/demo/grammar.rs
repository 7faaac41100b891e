//! A grammar of lists: an entry is text with slots, a slot takes an entry of another list.

use std::ops::Range;
use std::sync::OnceLock;

const SOURCE: &str = include_str!("grammar.txt");

/// SplitMix64 (Steele, Lea and Flood, 2014): a document is a function of its seed alone.
#[derive(Clone, Debug)]
pub(super) struct SplitMix64(pub(super) u64);

impl SplitMix64 {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform below `limit`, by multiplication.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    /// Below `limit`, small numbers first: the product of two uniform numbers, as common words outnumber rare ones.
    fn mostly_small(&mut self, limit: usize) -> usize {
        let bits = self.next();
        let product = ((bits >> 32) * (bits & 0xffff_ffff)) >> 32;
        ((product * limit as u64) >> 32) as usize
    }
}

enum Piece {
    Text(Range<u32>),
    List(u16),
}

/// A kind of document.
pub(super) struct Kind {
    pub(super) name: &'static str,
    weight: usize,
    /// Whether sentences stand on lines of their own.
    pub(super) lines: bool,
    list: u16,
}

pub(super) struct Grammar {
    text: String,
    pieces: Vec<Piece>,
    /// Each entry is a range of pieces, each list a range of entries.
    entries: Vec<Range<u32>>,
    lists: Vec<Range<u32>>,
    pub(super) kinds: Vec<Kind>,
}

impl Grammar {
    /// The grammar in `grammar.txt`, read once.
    pub(super) fn get() -> &'static Self {
        static GRAMMAR: OnceLock<Grammar> = OnceLock::new();
        GRAMMAR.get_or_init(|| Self::read(SOURCE))
    }

    fn read(source: &'static str) -> Self {
        let lines = || source.lines().filter(|l| !l.is_empty() && !l.starts_with("# "));
        // The name of a kind keeps its @, so that no slot can mean it.
        let head = |line: &'static str| line.strip_prefix("= ").or_else(|| line.starts_with('@').then_some(line));
        let names: Vec<&str> = lines().filter_map(head).map(|h| h.split(' ').next().unwrap_or(h)).collect();
        let mut g = Self { text: String::new(), pieces: vec![], entries: vec![], lists: vec![], kinds: vec![] };
        for line in lines() {
            let Some(head) = head(line) else {
                let from = g.pieces.len() as u32;
                g.read_entry(line, &names);
                g.entries.push(from..g.pieces.len() as u32);
                if let Some(list) = g.lists.last_mut() {
                    list.end += 1;
                }
                continue;
            };
            let mut words = head.split(' ');
            if let (Some(name), Some(weight), Some(joint)) = (words.next(), words.next(), words.next()) {
                let (weight, list) = (weight.parse().unwrap_or(1), g.lists.len() as u16);
                let name = name.trim_start_matches('@');
                g.kinds.push(Kind { name, weight, lines: joint == "newline", list });
            }
            let at = g.entries.len() as u32;
            g.lists.push(at..at);
        }
        g
    }

    /// Appends the pieces of one entry. A brace that does not enclose the name of a list is text.
    fn read_entry(&mut self, entry: &str, names: &[&str]) {
        let from = self.text.len();
        let mut rest = entry;
        let mut text_from = from;
        while let Some(c) = rest.chars().next() {
            let slot = rest.strip_prefix('{').and_then(|r| r.split_once('}'));
            if let Some((at, after)) =
                slot.and_then(|(name, after)| Some((names.iter().position(|n| *n == name)?, after)))
            {
                self.end_text(text_from);
                self.pieces.push(Piece::List(at as u16));
                text_from = self.text.len();
                rest = after;
            } else if let Some(after) = rest.strip_prefix("\\n") {
                self.text.push('\n');
                rest = after;
            } else {
                self.text.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        self.end_text(text_from);
    }

    fn end_text(&mut self, from: usize) {
        if self.text.len() > from {
            self.pieces.push(Piece::Text(from as u32..self.text.len() as u32));
        }
    }

    pub(super) fn kind(&self, random: &mut SplitMix64) -> &Kind {
        let mut left = random.below(self.kinds.iter().map(|k| k.weight).sum());
        let chosen = self.kinds.iter().find(|k| {
            let hit = left < k.weight;
            left = left.wrapping_sub(k.weight);
            hit
        });
        chosen.unwrap_or(&self.kinds[0])
    }

    /// Appends one sentence; any of the kind's, all alike.
    pub(super) fn sentence(&self, kind: &Kind, random: &mut SplitMix64, out: &mut String) {
        let entries = &self.lists[kind.list as usize];
        let entry = entries.start as usize + random.below(entries.len());
        self.expand(entry, random, out);
    }

    fn expand(&self, entry: usize, random: &mut SplitMix64, out: &mut String) {
        let pieces = &self.entries[entry];
        for piece in &self.pieces[pieces.start as usize..pieces.end as usize] {
            match piece {
                Piece::Text(at) => out.push_str(&self.text[at.start as usize..at.end as usize]),
                Piece::List(list) => {
                    let entries = &self.lists[*list as usize];
                    self.expand(entries.start as usize + random.mostly_small(entries.len()), random, out);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_take_entries_and_other_braces_stay() {
        let g = Grammar::read("@k 1 space\n{a}-{}{b}\\n\n= a\nx\n");
        let mut out = String::new();
        g.sentence(&g.kinds[0], &mut SplitMix64(1), &mut out);
        assert_eq!(out, "x-{}{b}\n");
    }

    #[test]
    fn the_grammar_is_large_and_its_lists_end() {
        let g = Grammar::get();
        let sentences: usize = g.kinds.iter().map(|k| g.lists[k.list as usize].len()).sum();
        assert!(sentences > 120 && g.lists.iter().all(|l| !l.is_empty()), "{sentences}");
        // Lists may only use lists; following slots from any list must not lead back to it.
        let uses = |list: usize| {
            let entries = &g.entries[g.lists[list].start as usize..g.lists[list].end as usize];
            let pieces = entries.iter().flat_map(|e| &g.pieces[e.start as usize..e.end as usize]);
            pieces.filter_map(|p| if let Piece::List(l) = p { Some(usize::from(*l)) } else { None }).collect::<Vec<_>>()
        };
        for start in 0..g.lists.len() {
            let mut reached = uses(start);
            for _ in 0..g.lists.len() {
                reached.extend(reached.clone().into_iter().flat_map(uses));
                reached.sort_unstable();
                reached.dedup();
            }
            assert!(!reached.contains(&start), "list {start} contains itself");
        }
    }
}
