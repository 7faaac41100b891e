//! Hard texts on which both engines must agree before the fast engine is used.

use super::vocab::AddedToken;

/// Pieces on which tokenizers are known to disagree, alone or combined.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    // Contractions, in upper and lower case, and similar text.
    "'s", "'S", "'t", "'re", "'RE", "'ve", "'Ll", "'m", "'d", "'mm", "'sa", "’s", "''", "'ſ", "don't", "it's", "I'LL",
    // Spaces that regular expressions do and do not match as white space.
    " ", "  ", "    ", "\t", "\t\t", "\n", "\n\n", "\r\n", "\r", "\u{a0}", "\u{2003}", "\u{3000}", "\u{2028}", "\u{85}", "\u{200b}", "\u{feff}", "\u{180e}", "\u{b}", "\u{c}", "\u{1c}",
    // Digits and numbers of several scripts.
    "0", "7", "12", "123", "1234", "1234567890", "3.14", "1,000", "٣٤", "४५", "Ⅷ", "½", "²", "①", "0x1f", "1e-9",
    // Letters: cases, titlecase, combining marks in both orders, ligatures, modifiers.
    "the", " the", "The", "THE", "mill", " grist", "iPhone", "HTMLParser", "é", "e\u{301}", "a\u{323}\u{302}", "a\u{302}\u{323}", "ﬁ", "ß", "ẞ", "İ", "ı", "ǅ", "ʰ", "Å", "\u{212b}", "ñ", "\u{1e9b}\u{323}",
    // Scripts, joiners and right-to-left marks.
    "日本語", "你好，世界。", "한국어", "각", "สวัสดี", "नमस्ते", "مرحبا", "שלום", "Привет", "Ελλάδα", "\u{200f}", "ｆｕｌｌ", "ｶﾞ", "ー", "々",
    // Emoji: pairs, joiners, tones, flags, key caps.
    "🙂", "👩‍👩‍👧", "👍🏽", "🇬🇷", "1️⃣", "❤️", "\u{1f9ff}", "🏴\u{e0067}\u{e007f}",
    // Control, unassigned, private and last code points.
    "\0", "\u{1}", "\u{7f}", "\u{378}", "\u{e000}", "\u{ffff}", "\u{10ffff}", "\u{fffd}",
    // Punctuation and text that resembles special tokens.
    "...", "--", "—", "!", "?!", "_", "__", "(", "){", "\\", "\"", "<", "|>", "<|", "<|end", "</s>", "<s>", "[CLS]", "[UNK]", "##ing", "▁", "Ġ", "Ċ", "<0x0A>", "@@", "&amp;", "https://a.b/c?d=e#f", "$x^2$", "::", "->", "=>", "/*", "*/", "#!", "%d",
];

/// Number of generated texts, in addition to each piece alone.
const MIXED: usize = 240;

/// Returns the texts in a fixed order. They include the added tokens of the file, on which engines differ most.
pub(super) fn texts(added: &[AddedToken]) -> Vec<String> {
    let mut texts: Vec<String> = PIECES.iter().map(|p| (*p).to_owned()).collect();
    texts.push(String::new());
    texts.extend(prose().map(str::to_owned));
    texts.extend(
        ["a", " ", "\n", "=", "0", "é", "日", "🙂", "ab ", "\r\n", " \n", "'s", "\0"]
            .map(|run| run.repeat(300 / run.len())),
    );
    let mut random = Xorshift(0x9e37_79b9_7f4a_7c15);
    for _ in 0..MIXED {
        let pieces = 2 + random.below(12);
        texts.push((0..pieces).map(|_| PIECES[random.below(PIECES.len())]).collect());
    }
    // A file may declare thousands of tokens, so only a sample with the first and the last is used.
    let step = added.len().div_ceil(16).max(1);
    for token in added.iter().step_by(step).chain(added.last()) {
        let t = &token.content;
        texts.extend([
            t.clone(),
            format!("a{t}b"),
            format!(" {t} "),
            format!("{t}{t}\n"),
            format!("x {}", t.to_lowercase()),
        ]);
        texts.extend(t.char_indices().nth(3).map(|(cut, _)| format!("cut {} short", &t[..cut])));
    }
    texts
}

/// Iterates over longer texts of prose, markup and code, for merges that short pieces do not reach.
pub(super) fn prose() -> impl Iterator<Item = &'static str> {
    [
        "The miller lifted the sluice at six, and by a quarter past the stones were turning; it wasn't the wheel's fault.",
        "  Indented prose,   with runs of   spaces\t\tand tabs, ends in two newlines.\n\n",
        "fn grind(grain: &[u8], stones: usize) -> Result<Vec<u8>, Error> {\n    grain.chunks(stones).map(|c| crush(c)).collect()\n}\n",
        "for i in range(10):\n\tif i % 3 == 0:\n\t\tprint(f\"{i:>4d} sacks\")  # every third\n",
        "{\"mill\": \"Cross Gate\", \"sacks\": [1, 22, 333, 4444], \"open\": true, \"rate\": 0.125}",
        "<p class=\"flour\">Stone&nbsp;ground &mdash; <b>since</b> 1784</p>",
        "Let $x_{n+1} = x_n - f(x_n)/f'(x_n)$; then |x_n - r| <= C|x_{n-1} - r|^2 for n >= n_0.",
        "SELECT m.name, COUNT(*) FROM mills AS m WHERE m.built < '1850-01-01' GROUP BY 1 ORDER BY 2 DESC;",
        "Übergrößenträger naïvely coöperated; Ångström's façade déjà vu, œuvre, straße, STRASSE.",
        "| name | sacks |\n|------|------:|\n| Ouse |  1,204 |\n| Wear |    987 |\n",
    ]
    .into_iter()
}

/// Marsaglia's xorshift64. The texts must be equal on every machine, and need no better random numbers.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_are_many_and_small() {
        let added: Vec<_> =
            (0..5000).map(|id| AddedToken { id, content: format!("<|reserved_special_token_{id}|>") }).collect();
        let all = texts(&added);
        assert!(all.len() > 450, "{}", all.len());
        assert!(all.iter().any(|t| t == "a<|reserved_special_token_4999|>b"));
        let bytes: usize = all.iter().map(String::len).sum();
        assert!(bytes < 40_000, "{bytes} bytes would slow every start down");
        assert_eq!(all, texts(&added));
    }
}
