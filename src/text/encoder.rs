//! Encoding with opening and closing tokens and a length limit.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::tokenizer::Tokenizer;
use crate::error::{Error, Result};

/// A token, by its name in the vocabulary or by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenName {
    /// The name in the vocabulary: `<|endoftext|>`.
    Text(String),
    /// The id.
    Id(u32),
}

impl TokenName {
    fn resolve(&self, tokenizer: &Tokenizer) -> Result<u32> {
        match *self {
            Self::Text(ref name) => tokenizer.token_to_id(name),
            Self::Id(id) if id < tokenizer.vocab_size() => Ok(id),
            Self::Id(id) => {
                let size = tokenizer.vocab_size();
                Err(Error::config(format!("token id {id} is outside the vocabulary of {size}")).path(tokenizer.name()))
            }
        }
    }
}

impl From<&str> for TokenName {
    fn from(name: &str) -> Self {
        Self::Text(name.to_owned())
    }
}

impl From<u32> for TokenName {
    fn from(id: u32) -> Self {
        Self::Id(id)
    }
}

/// The treatment of a text of more than [`max_len`](TokeniseOptions::max_len) tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overflow {
    /// Keep the beginning of the text. Opening and closing tokens stay and text is cut, as in Hugging Face `tokenizers`.
    #[default]
    Truncate,
    /// Cut the text into consecutive pieces of `max_len` tokens; the last piece may be shorter. The joined pieces are the
    /// ids of the whole text: only the first piece has the opening token, only the last piece the closing token.
    Chunk,
    /// Return an error.
    Error,
}

impl Overflow {
    /// Returns the name of the policy in pipeline files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Truncate => "truncate",
            Self::Chunk => "chunk",
            Self::Error => "error",
        }
    }
}

/// Options of a [`TextEncoder`]: the added tokens and the length limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokeniseOptions {
    /// Token before each text.
    pub bos: Option<TokenName>,
    /// Token after each text.
    pub eos: Option<TokenName>,
    /// Maximum number of tokens per text, including opening and closing tokens.
    pub max_len: Option<usize>,
    /// The treatment of texts beyond `max_len`.
    pub overflow: Overflow,
}

impl TokeniseOptions {
    setters! {
        /// Adds `token` before each text.
        #[must_use]
        pub prepend_bos(token: impl Into<TokenName>) => bos = Some(token.into());

        /// Adds `token` after each text.
        #[must_use]
        pub append_eos(token: impl Into<TokenName>) => eos = Some(token.into());

        /// Limits a text to `tokens`, including opening and closing tokens.
        #[must_use]
        pub max_len(tokens: usize) => max_len = Some(tokens);

        /// Sets the treatment of texts beyond [`max_len`](Self::max_len).
        #[must_use]
        pub overflow: Overflow;
    }
}

/// Counts of texts that exceeded the length limit since the encoder was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LengthCounts {
    /// Texts that were truncated.
    pub truncated: u64,
    /// Tokens cut off by truncation.
    pub tokens_cut: u64,
    /// Texts cut into pieces.
    pub split: u64,
    /// Pieces of all split texts.
    pub chunks: u64,
}

/// A tokenizer with opening and closing tokens and a length limit.
///
/// The encoder counts all texts that it cuts, so no token is lost silently. Any number of threads may share an encoder.
#[derive(Debug)]
pub struct TextEncoder {
    tokenizer: Tokenizer,
    bos: Option<u32>,
    eos: Option<u32>,
    max_len: usize,
    overflow: Overflow,
    truncated: AtomicU64,
    tokens_cut: AtomicU64,
    split: AtomicU64,
    chunks: AtomicU64,
}

/// A file of a tokenizer, a [`Tokenizer`], or an encoder: the argument of [`tokenise`](super::TokeniseMap::tokenise).
pub trait IntoEncoder {
    /// Returns the encoder. Files and tokenizers get an encoder with default options.
    ///
    /// # Errors
    /// Fails like [`Tokenizer::from_file`], if the argument is a file.
    fn into_encoder(self) -> Result<Arc<TextEncoder>>;
}

impl IntoEncoder for Arc<TextEncoder> {
    fn into_encoder(self) -> Result<Self> {
        Ok(self)
    }
}

impl IntoEncoder for TextEncoder {
    fn into_encoder(self) -> Result<Arc<Self>> {
        Ok(Arc::new(self))
    }
}

impl IntoEncoder for Tokenizer {
    fn into_encoder(self) -> Result<Arc<TextEncoder>> {
        TextEncoder::new(self, &TokeniseOptions::default()).map(Arc::new)
    }
}

impl<P: AsRef<Path> + ?Sized> IntoEncoder for &P {
    fn into_encoder(self) -> Result<Arc<TextEncoder>> {
        Tokenizer::from_file(self)?.into_encoder()
    }
}

impl TextEncoder {
    /// Makes an encoder: looks up the tokens and checks the limit.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if a token is not in the vocabulary (the error names the nearest
    /// token), or if the limit leaves no room for text.
    pub fn new(tokenizer: Tokenizer, options: &TokeniseOptions) -> Result<Self> {
        let resolve = |name: &Option<TokenName>| name.as_ref().map(|n| n.resolve(&tokenizer)).transpose();
        let (bos, eos) = (resolve(&options.bos)?, resolve(&options.eos)?);
        let around = usize::from(bos.is_some()) + usize::from(eos.is_some());
        let max_len = options.max_len.unwrap_or(usize::MAX);
        if max_len <= around {
            return Err(Error::config(format!("max_len is {max_len}, at least {} is needed", around + 1)));
        }
        let [truncated, tokens_cut, split, chunks] = [const { AtomicU64::new(0) }; 4];
        let overflow = options.overflow;
        Ok(Self { tokenizer, bos, eos, max_len, overflow, truncated, tokens_cut, split, chunks })
    }

    /// Appends the ids of `text` to `ids`, and for each piece the length of `ids` at its end to `ends`.
    ///
    /// Every text, even an empty text, yields one piece; only [`Overflow::Chunk`] may yield more. Returns the number of tokens
    /// that [`Overflow::Truncate`] cut off.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if a text is too long under [`Overflow::Error`], or if the vocabulary
    /// cannot encode it. `ids` and `ends` are then unchanged.
    pub fn encode_into(&self, text: &str, ids: &mut Vec<u32>, ends: &mut Vec<usize>) -> Result<usize> {
        let start = ids.len();
        ids.extend(self.bos);
        if let Err(error) = self.tokenizer.encode_into(text, ids) {
            ids.truncate(start);
            return Err(error);
        }
        ids.extend(self.eos);
        let len = ids.len() - start;
        if len > self.max_len {
            self.shorten(ids, ends, start, len)?;
        }
        ends.push(ids.len());
        Ok(len - (ids.len() - start))
    }

    /// Applies the policy to a text of `len` ids from `start` on. The caller adds the end of the last piece.
    #[cold]
    fn shorten(&self, ids: &mut Vec<u32>, ends: &mut Vec<usize>, start: usize, len: usize) -> Result<()> {
        match self.overflow {
            Overflow::Truncate => {
                ids.truncate(start + self.max_len);
                if let (Some(eos), Some(last)) = (self.eos, ids.last_mut()) {
                    *last = eos;
                }
                self.truncated.fetch_add(1, Relaxed);
                self.tokens_cut.fetch_add((len - self.max_len) as u64, Relaxed);
            }
            Overflow::Chunk => {
                let pieces = len.div_ceil(self.max_len);
                ends.extend((1..pieces).map(|n| start + n * self.max_len));
                self.split.fetch_add(1, Relaxed);
                self.chunks.fetch_add(pieces as u64, Relaxed);
            }
            Overflow::Error => {
                ids.truncate(start);
                return Err(Error::data(format!("text of {len} tokens, limit {}", self.max_len))
                    .help("raise max_len, or set overflow to truncate or chunk"));
            }
        }
        Ok(())
    }

    /// Returns the counts of truncated and split texts so far.
    pub fn length_counts(&self) -> LengthCounts {
        LengthCounts {
            truncated: self.truncated.load(Relaxed),
            tokens_cut: self.tokens_cut.load(Relaxed),
            split: self.split.load(Relaxed),
            chunks: self.chunks.load(Relaxed),
        }
    }

    /// Returns the tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns the arguments that affect the ids, for the fingerprint of a pipeline.
    pub fn params(&self) -> String {
        let mut params = format!("tokenizer={}", self.tokenizer.fingerprint());
        let ids = [("bos", self.bos), ("eos", self.eos)];
        for (name, id) in ids.into_iter().filter_map(|(name, id)| Some((name, id?))) {
            params += &format!(", {name}={id}");
        }
        if self.max_len < usize::MAX {
            params += &format!(", max_len={}, overflow={}", self.max_len, self.overflow.as_str());
        }
        params
    }

    /// Returns true if a text may yield several pieces.
    pub fn may_split(&self) -> bool {
        self.overflow == Overflow::Chunk && self.max_len < usize::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo;
    use crate::error::ErrorKind;

    const TEXT: &str = "The miller lifted the sluice at six.";

    fn encode(options: &TokeniseOptions) -> Result<(Vec<Vec<u32>>, LengthCounts)> {
        let encoder = TextEncoder::new(demo::tokenizer()?, options)?;
        // Existing ids stay.
        let (mut ids, mut ends) = (vec![9], vec![1]);
        encoder.encode_into(TEXT, &mut ids, &mut ends)?;
        assert_eq!((ids[0], ends[0]), (9, 1));
        let pieces = ends.windows(2).map(|w| ids[w[0]..w[1]].to_vec()).collect();
        Ok((pieces, encoder.length_counts()))
    }

    fn whole() -> Vec<u32> {
        demo::tokenizer().unwrap().encode(TEXT).unwrap()
    }

    #[test]
    fn tokens_go_around_the_text() {
        let options = TokeniseOptions::default().prepend_bos(5).append_eos(demo::END_OF_TEXT);
        let (pieces, counts) = encode(&options).unwrap();
        assert_eq!(pieces, [[&[5], &whole()[..], &[0]].concat()]);
        assert_eq!(counts, LengthCounts::default());
        let unknown = TokeniseOptions::default().append_eos("</s>");
        assert_eq!(encode(&unknown).unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(encode(&TokeniseOptions::default().append_eos(4096)).unwrap_err().kind(), ErrorKind::Config);
    }

    #[test]
    fn truncation_keeps_the_tokens_around() {
        let options = TokeniseOptions::default().prepend_bos(5).append_eos(0).max_len(6);
        let (pieces, counts) = encode(&options).unwrap();
        assert_eq!(pieces, [[&[5], &whole()[..4], &[0]].concat()]);
        assert_eq!((counts.truncated, counts.tokens_cut), (1, whole().len() as u64 + 2 - 6));
        assert!(encode(&options.clone().max_len(2)).is_err());
    }

    #[test]
    fn pieces_joined_are_the_whole_text() {
        let all = [&[5], &whole()[..], &[0]].concat();
        for max_len in [3, 4, all.len() - 1, all.len(), all.len() + 1] {
            let options = TokeniseOptions::default().prepend_bos(5).append_eos(0).max_len(max_len);
            let (pieces, counts) = encode(&options.overflow(Overflow::Chunk)).unwrap();
            assert_eq!(pieces.concat(), all);
            assert!(pieces.iter().rev().skip(1).all(|p| p.len() == max_len));
            assert_eq!(counts.chunks, if pieces.len() > 1 { pieces.len() as u64 } else { 0 });
        }
    }

    #[test]
    fn a_refused_text_leaves_nothing_behind() {
        let options = TokeniseOptions::default().max_len(3).overflow(Overflow::Error);
        let encoder = TextEncoder::new(demo::tokenizer().unwrap(), &options).unwrap();
        let (mut ids, mut ends) = (vec![9], vec![]);
        let error = encoder.encode_into(TEXT, &mut ids, &mut ends).unwrap_err();
        assert_eq!(error.message(), format!("text of {} tokens, limit 3", whole().len()));
        assert_eq!((ids, ends), (vec![9], vec![]));
        encoder.encode_into("", &mut vec![], &mut vec![]).unwrap();
    }
}
