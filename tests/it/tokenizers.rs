//! GPT-2's vocabulary against reference ids, on both engines; the folder is `GRISTMILL_TOKENIZERS`.
#![cfg(feature = "text-compat")]

use std::path::PathBuf;

use gristmill::text::{EngineChoice, EngineReason, TextEncoder, TokeniseOptions, Tokenizer, TokenizerOptions};

/// The folder, or `None` with a message where it is absent.
fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("GRISTMILL_TOKENIZERS").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/tokenizers").into());
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no folder {} (set GRISTMILL_TOKENIZERS)", folder.display());
    None
}

fn gpt2(folder: &std::path::Path, engine: EngineChoice) -> Tokenizer {
    Tokenizer::from_file_with(folder.join("gpt2.tokenizer.json"), TokenizerOptions::default().engine(engine)).unwrap()
}

#[test]
fn every_reference_text_has_exactly_its_ids_on_both_engines() {
    let Some(folder) = folder() else { return };
    let expected = std::fs::read_to_string(folder.join("gpt2.expected.jsonl")).unwrap();
    for choice in [EngineChoice::Auto, EngineChoice::Fast, EngineChoice::Compat] {
        let tokenizer = gpt2(&folder, choice);
        let mut texts = 0;
        for (n, line) in expected.lines().enumerate() {
            let case: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = case["text"].as_str().unwrap();
            let ids: Vec<u32> = case["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
            assert_eq!(tokenizer.encode(text).unwrap(), ids, "line {}: {text:?} with {choice:?}", n + 1);
            assert_eq!(tokenizer.decode(&ids).unwrap(), text, "line {} with {choice:?}", n + 1);
            texts += 1;
        }
        assert!(texts > 0, "{} is empty", folder.join("gpt2.expected.jsonl").display());
    }
}

#[test]
fn the_fast_engine_passes_the_probe_and_is_shared() {
    let Some(folder) = folder() else { return };
    let tokenizer = gpt2(&folder, EngineChoice::Auto);
    let report = tokenizer.engine_report();
    assert!(matches!(report.reason, EngineReason::Checked { texts } if texts > 300), "{report}");
    assert_eq!((report.engine.as_str(), report.slowdown), ("tokenizers 1.0.0-rc.3", 1.0));
    let again = gpt2(&folder, EngineChoice::Auto);
    assert!(std::sync::Arc::ptr_eq(tokenizer.engine(), again.engine()));
    assert_eq!(tokenizer.vocab_size(), 50257);
}

#[test]
fn special_tokens_are_text_unless_asked_for() {
    let Some(folder) = folder() else { return };
    let text = "one<|endoftext|>two";
    for engine in [EngineChoice::Fast, EngineChoice::Compat] {
        let plain = gpt2(&folder, engine).encode(text).unwrap();
        assert!(!plain.contains(&50256), "{plain:?}");
        let options = TokenizerOptions::default().engine(engine).special_in_text(true);
        let special = Tokenizer::from_file_with(folder.join("gpt2.tokenizer.json"), options).unwrap();
        assert_eq!(special.encode(text).unwrap(), [505, 50256, 11545]);
        assert_eq!(special.decode(&plain).unwrap(), text);
    }
}

#[test]
fn an_unknown_token_names_the_nearest_one() {
    let Some(folder) = folder() else { return };
    let tokenizer = gpt2(&folder, EngineChoice::Auto);
    let error = TextEncoder::new(tokenizer, &TokeniseOptions::default().append_eos("<|end_of_text|>")).unwrap_err();
    assert_eq!(error.kind(), gristmill::ErrorKind::Config);
    assert_eq!(error.help_text(), Some("the nearest token is \"<|endoftext|>\""));
}

/// Where it is loaded for the first element, and not where it was there before.
#[test]
fn loading_it_is_a_cause_of_start_up() {
    use gristmill::{Load, MapDatasetExt, dataset::map::Range};

    let Some(folder) = folder() else { return };
    let file = std::fs::read(folder.join("gpt2.tokenizer.json")).unwrap();
    // Of its own: what is loaded once is there for all.
    let load = move || Tokenizer::from_bytes("gpt2", &[&file[..], b"\n\n"].concat()).unwrap();
    let causes = |load: Box<dyn Fn() -> Tokenizer + Send + Sync>| {
        let mut loader = Range::new(0, 9)
            .map(move |x| load().encode("a").unwrap().len() as i64 + x)
            .to_iter()
            .loader()
            .build()
            .unwrap();
        loader.next().unwrap().unwrap();
        loader.report().waits.startup
    };
    let named = |causes: &[String]| causes.iter().any(|cause| cause.ends_with(" of it: a tokenizer loaded"));
    let lazily = causes(Box::new(load.clone()));
    assert!(named(&lazily), "{lazily:?}");
    let loaded = load();
    let before = causes(Box::new(move || loaded.clone()));
    assert!(!named(&before), "{before:?}");
}
