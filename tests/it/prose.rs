//! Word patterns in comments that make technical English hard to read. Folders that were rewritten stay below a limit.

use std::path::Path;

use super::floors::all_files;

/// Folders that were rewritten.
const FOLDERS: [&str; 23] = [
    "src/cli",
    "src/consumer",
    "src/dataset",
    "src/device",
    "src/element",
    "src/exec",
    "src/keys",
    "src/ledger",
    "src/live",
    "src/loader",
    "src/pack",
    "src/part",
    "src/python",
    "src/report",
    "src/rng",
    "src/sink",
    "src/source",
    "src/spec",
    "src/store",
    "src/text",
    "src/tune",
    "src/wire",
    "src/workers",
];
/// Patterns per 1,000 words, by the count below. Well-kept crates have 1 to 5.
const MOST: f64 = 10.0;

/// Phrases of one or more words, as patterns: `a|b` is either word, `*` the end of a sentence before the phrase.
const PATTERNS: [&str; 15] = [
    "what is|it|was|were|they|has|have|had|can|could|may|must|does|did|a|an|the|each|one|others|this|stands|comes|cannot|belongs|takes|makes",
    "whoever|whatever|wherever",
    "those that|who|of|which|in|behind|for|whose|to|with",
    "that of",
    "of that|those",
    "* the same",
    "nobody|somebody|anybody|everybody",
    "so much|many|long|few",
    "behind",
    "in front",
    "stand|stands|lie|lies in|at|on|for|there|behind|between|by|beside",
    "say|says|said|tell|tells|told|hear|hears|heard|know|knows|want|wants|believe|believes|speak|speaks",
    "where it|there|that|those|they|a|an|the|no|one|all|some|nothing|none",
    "by|of itself|one|ones",
    "is|are|was|were to be|have|go|do|come",
];

#[test]
fn rewritten_folders_stay_below_the_limit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in FOLDERS {
        let (mut words, mut hits) = (0, Vec::new());
        for file in all_files(&root.join(folder)) {
            let text = std::fs::read_to_string(&file).unwrap();
            for paragraph in paragraphs(&text) {
                let found = found(&paragraph);
                words += paragraph.iter().filter(|word| *word != "*").count();
                hits.extend(found.into_iter().map(|phrase| format!("{}: {phrase}", file.display())));
            }
        }
        assert!(words > 100, "{folder} has no comments");
        let rate = 1000.0 * hits.len() as f64 / words as f64;
        assert!(
            rate <= MOST,
            "{folder}: {rate:.1} patterns per 1000 words of comments, of which the first are {:#?}",
            &hits[..10]
        );
    }
}

#[test]
fn patterns_are_found() {
    let count = |text: &str| paragraphs(text).iter().map(|paragraph| found(paragraph).len()).sum::<usize>();
    assert_eq!(count("/// What is evaluated, by whoever wants it."), 3);
    assert_eq!(count("/// Returns the size.\n/// The same for files behind it."), 2);
    assert_eq!(count("/// Returns the same size as before.\nlet what = it;"), 0);
    assert_eq!(count("// Reads `what is` quoted, and a [link](where the).\n/// ```\n/// // what is code\n/// ```"), 0);
}

/// Words of the comments of a file, in lower case, without code; `*` marks the start of a sentence.
fn paragraphs(text: &str) -> Vec<Vec<String>> {
    let (mut all, mut is_code) = (vec![String::new()], false);
    for line in text.lines().map(str::trim_start) {
        let comment = line.strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']).trim());
        match comment {
            Some(fence) if fence.starts_with("```") => is_code = !is_code,
            Some(words) if !is_code && !words.starts_with(['|', '#']) => {
                let last = all.last_mut().expect("never empty");
                last.push_str(words);
                last.push(' ');
            }
            Some(_) => {}
            None => {
                is_code = false;
                all.push(String::new());
            }
        }
    }
    all.iter().filter(|text| !text.is_empty()).map(|text| words(text)).collect()
}

fn words(paragraph: &str) -> Vec<String> {
    let plain: String = paragraph.split('`').step_by(2).collect::<Vec<_>>().join("X");
    let plain = without_links(&plain).to_lowercase();
    let mut words = vec!["*".to_owned()];
    for word in plain.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        words.push(bare.to_owned());
        if word.ends_with(['.', ':', ';']) {
            words.push("*".to_owned());
        }
    }
    words
}

/// Removes the targets of links: `[text](target)`.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once(')').map_or("", |(_, rest)| rest));
    }
    plain
}

/// Phrases of a paragraph that a pattern describes.
fn found(words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for pattern in PATTERNS {
        let pattern: Vec<Vec<&str>> = pattern.split(' ').map(|word| word.split('|').collect()).collect();
        let phrases = words.windows(pattern.len());
        let phrases =
            phrases.filter(|phrase| phrase.iter().zip(&pattern).all(|(word, any)| any.contains(&word.as_str())));
        found.extend(phrases.map(|phrase| phrase.join(" ")));
    }
    found
}
