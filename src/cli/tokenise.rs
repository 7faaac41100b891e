//! `gristmill tokenise`: writes text as token ids to disk.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::dataset::iter::BadRecords;
use crate::sink::SinkFormat;
use crate::source::TokenType;
use crate::spec::{Data, Opening};
use crate::text::Tokenizer;
use serde_json::json;

use crate::cli::bad::OnBad;
use crate::cli::convert::format;
use crate::cli::write::Shards;
use crate::cli::{OUTPUT, Outcome, examples, output};

/// Writes text as token ids, in shards
///
/// Shards are token files, as llm.c and nanoGPT read them, or of any format with columns.
///
/// Without --seq-len an element is a document. With it, documents are joined and cut into rows of as many tokens, which also have the columns
/// tokens_segment_ids and tokens_positions. No token is lost, and the last row is padded with 0.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill tokenise corpus.jsonl --tokenizer tokenizer.json --append-eos '<|endoftext|>' --out tokens"
    "gristmill tokenise data/*.parquet --tokenizer tokenizer.json --format parquet --seq-len 1024 --out rows"
    "zcat corpus.jsonl.gz | gristmill tokenise - --tokenizer tokenizer.json --out tokens"
))]
pub(crate) struct Args {
    /// Files, globs or folders of documents; `-` is standard input
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// File of a tokenizer: tokenizer.json, .tiktoken or a SentencePiece model
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// Column of text
    #[arg(long, value_name = "NAME", default_value = "text")]
    column: String,
    /// The format to write
    #[arg(long, value_name = "FORMAT", default_value = "tokens", value_parser = format())]
    format: SinkFormat,
    /// Put this token after every document
    #[arg(long, value_name = "TOKEN")]
    append_eos: Option<String>,
    /// Put this token before every document
    #[arg(long, value_name = "TOKEN")]
    prepend_bos: Option<String>,
    /// Pack documents into rows of N tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    seq_len: Option<u32>,
    #[command(flatten)]
    on_bad: OnBad,
    #[command(flatten)]
    shards: Shards,
    /// Print one JSON object instead of text
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    // Loading a tokenizer takes a second, so other errors are reported first.
    let bad = args.on_bad.policy()?;
    let opening = Opening { bad, ..Opening::default() };
    let text = Data::open_as(&args.data, &[&args.column], opening).map_err(|e| args.on_bad.told(e))?;
    let text = text.then("select_columns", &json!({"columns": [args.column]}))?;
    // Formats with a single column store the ids.
    let mut options = args.shards.options(args.format).column("tokens");
    // Kept alive so that the stage does not load the file again.
    let tokenizer = load(&args.tokenizer)?;
    if !args.shards.chooses_ids() {
        options = options.token_type(if tokenizer.vocab_size() <= 1 << 16 { TokenType::U16 } else { TokenType::U32 });
    }
    let written = args.shards.write(options, args.tokens(text, bad)?, |error| args.on_bad.told(error), true)?;
    Ok(args.shards.tell(&written, args.json))
}

/// Loads a tokenizer, and prints the remark on its engine if there is a remark.
///
/// # Errors
/// Errors of [`Tokenizer::from_file`].
pub(super) fn load(path: &Path) -> Result<Tokenizer> {
    let tokenizer = Tokenizer::from_file(path)?;
    if let Some(remark) = tokenizer.engine_report().remark() {
        output::warn(&format!("{}: {remark}", path.display()));
    }
    Ok(tokenizer)
}

impl Args {
    fn tokens(&self, text: Data, bad: BadRecords) -> Result<Data> {
        let mut arguments = json!({"tokenizer": self.tokenizer, "column": self.column, "into": "tokens"});
        for (name, token) in [("append_eos", &self.append_eos), ("prepend_bos", &self.prepend_bos)] {
            if let Some(token) = token {
                arguments[name] = json!(token);
            }
        }
        let tokens = text.then("tokenise", &arguments)?.on_bad_record(bad);
        match self.seq_len {
            Some(length) => tokens.then("concat_then_split_pack", &json!({"length": {"tokens": length}})),
            None => Ok(tokens),
        }
    }
}
