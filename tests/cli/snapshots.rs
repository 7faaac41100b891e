//! What the commands print, word for word: messages are part of the product. Only what a clock measured stands as `#`.

use super::{PIPELINE, demo, fails, ok, write};

/// The report: its words and its stages, but no times, and not which stage limits the run or what would help.
fn report(text: &str) -> String {
    // Broken lines become one.
    let text = text.replace(&format!("\n{}", " ".repeat(9)), " ");
    let (mut shape, mut in_verdict, mut in_why) = (String::new(), false, false);
    for line in text.lines() {
        // Why it waited, which is said where it waited for several things, and goes on in lines that are indented.
        in_why = line.starts_with("why ") || line.starts_with("longest ") || (in_why && line.starts_with("    "));
        // Other programs may be at work, or not.
        if in_why || line.starts_with("note: other programs") {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        // The verdict and its advice go to the next empty line.
        in_verdict = !words.is_empty() && (in_verdict || words[0] == "VERDICT");
        match words.as_slice() {
            ["VERDICT", ..] => shape += "VERDICT …\n",
            _ if in_verdict => {}
            [id, name, ..] if line.starts_with("  ") && id.parse::<u32>().is_ok() => {
                shape += &format!("  {id} {name} …\n");
            }
            // What the wait is made of, no more than what there is of it.
            ["the", "consumer", "waited", ..] | ["waits", "took", ..] => {
                let (head, rest) = line.split_once(" · ").unwrap_or((line, ""));
                let head = head.split(": ").next().unwrap_or(head);
                shape += &(without_figures(&format!("{head} · {rest}").split_whitespace().collect::<Vec<_>>()) + "\n");
            }
            // And no cause, of which there may be several.
            ["start-up", ..] => {
                let head = line.split(';').next().unwrap_or(line);
                shape += &(without_figures(&head.split_whitespace().collect::<Vec<_>>()) + "\n");
            }
            ["counted:" | "order" | "row" | "stage", ..] => shape += &format!("{line}\n"),
            _ => shape += &(without_figures(&words) + "\n"),
        }
    }
    shape
}

/// `#` for every word with a digit in it, for the unit behind it, and for the `<` before the shortest times.
fn without_figures(words: &[&str]) -> String {
    const UNITS: &[&str] = &["s", "ms", "µs", "ns", "%", "k", "M", "G", "k/s", "M/s", "G/s"];
    let mut out: Vec<&str> = Vec::new();
    for word in words {
        match word.trim_start_matches('(') {
            unit if out.last() == Some(&"#") && UNITS.contains(&unit) => {}
            "<" => {}
            figure if figure.contains(|c: char| c.is_ascii_digit()) => out.push("#"),
            _ => out.push(word),
        }
    }
    out.join(" ")
}

#[test]
fn the_report() {
    let (folder, _) = demo();
    let text = ok(folder.path(), &["run", PIPELINE, "--threads", "2"]);
    insta::assert_snapshot!(report(&text), @r"
    # · # delivered · # · # threads # busy
    waits took # of the time · next() # # # # · buffer # full when asked
    start-up # until the first element
      stage                          wait %  self/elem   cpu  waits  lock  elements    elem/s    bytes/s
      5 batch …
      4 window_pack …
      3 to_iter …
      2 tokenise …
      1 shuffle …
      0 jsonl …
    counted: real tokens 460 k, padding cells 544, sequences split 45
    VERDICT …

    tokens # # · # · # of all cells are real
    batches # · # after the first, which took #
    order hash  beb4ff8773200cb4f359da144c0e329d
    row digest  1ddf7510138de133f56b51a914aa4ff3 · 448 rows
    ");
    let inline = ok(folder.path(), &["run", PIPELINE, "--inline"]);
    let head: Vec<_> = report(&inline).lines().take(3).map(str::to_owned).collect();
    insta::assert_snapshot!(head.join("\n"), @r"
    # · # delivered · # · inline
    waits took # of the time · next() # # # #
    start-up # until the first element
    ");
}

#[test]
fn what_explain_says() {
    let (folder, _) = demo();
    let folder = folder.path();
    insta::assert_snapshot!(ok(folder, &["explain", PIPELINE]), @r"
    demo

     id  stage        arguments                             role         runs              memory
     0   jsonl        corpus.jsonl, bytes=2000470, hash=4…  source       on any thread   8.29 KiB
     1   shuffle      seed=42                               order        on any thread   49.7 KiB
     2   tokenise     text->tokens, tokenizer=c3ce674bd71…  elementwise  on any thread          –
     3   to_iter                                            order        on any thread          –
     4   window_pack  features=tokens:1024, window=1024, …  stateful     in order       ~1.15 MiB
     5   batch        32, remainder=drop                    stateful     in order        ~768 KiB

    fingerprint  0126cafa1b33c842
    memory       about 3.46 MiB: stages 1.96 MiB, buffer 1.5 MiB (4 batches of 384 KiB)
                 ~ by the first 64 elements; without tokenizers, mapped files and what threads work on
    hosts        each of several evaluates all elements and takes its rows: window_pack (stage 4)
                 depends on the elements themselves; with `keys` it would evaluate only its own
    element      tokens                       int32[32, 1024]
                 tokens_segment_ids           int32[32, 1024]
                 tokens_positions             int32[32, 1024]
    ");
    write(
        folder,
        "more.yaml",
        "source: {memory: {records: [{t: [1, 2, 3]}, {t: [4, 5]}, {t: [6]}]}}\n\
         stages:\n  - repeat: {num_epochs: 100}\n  - concat_then_split_pack: {length: {t: 3}}\n  - batch: 2\n  - cache\n\
         executor: {threads: 2}\n",
    );
    insta::assert_snapshot!(ok(folder, &["explain", "more.yaml"]), @r"
     id  stage                   arguments                             role      runs            memory
     0   memory                  3 records, digest=13b1fce2484d0ebe8…  source    on any thread     48 B
     1   repeat                  100                                   order     on any thread        –
     2   to_iter                                                       order     on any thread        –
     3   concat_then_split_pack  features=t:3, split_full_length_fea…  stateful  in order        ~113 B
     4   batch                   2, remainder=keep                     stateful  in order        ~192 B
     5   cache                                                         stateful  in order       unknown

    fingerprint  127075ca00dc9bf4
    executor     2 threads
    memory       about 545 B: stages 353 B, buffer 192 B (2 batches of 96 B)
                 and the data held by cache
                 ~ by the first 64 elements; without tokenizers, mapped files and what threads work on
    hosts        each of several evaluates all elements and takes its rows: cache (stage 5) depends on
                 the elements themselves; keys do not help: cache (stage 5) needs all rows of its
                 batches
    element      t                            int64[2, 3]
                 t_segment_ids                int32[2, 3]
                 t_positions                  int32[2, 3]
    ");
    write(folder, "empty.yaml", "source: {range: 0}\n");
    insta::assert_snapshot!(ok(folder, &["explain", "empty.yaml"]), @r"
     id  stage       arguments  role         runs           memory
     0   range       0, 0, 1    source       on any thread       –
     1   to_element  index      elementwise  on any thread       –
     2   to_iter                order        on any thread       –

    fingerprint  a180722f575fd676
    memory       0 B: stages 0 B
    hosts        each of several evaluates all elements and takes its rows: it does not end in `batch`
    element      none: the pipeline is empty
    ");
}

#[test]
fn what_padding_costs() {
    let (folder, _) = demo();
    let args = ["analyze-padding", "gristmill-demo/corpus.jsonl", "--seq-len", "512", "--batch", "8"];
    insta::assert_snapshot!(ok(folder.path(), &args), @r"
    2 121 documents · 478 k tokens (estimated at 4 bytes each) in column `text`
    median 145 · p90 491 · p99 1368 · max 3327 · 9.1 % are longer than 512

                0–8  ▇ 0.0 %
               9–16  ▇ 0.4 %
              17–32  ▇▇▇▇▇▇▇▇▇ 5.6 %
              33–64  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇ 17.3 %
             65–128  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇ 22.5 %
            129–256  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇ 27.1 %
            257–512  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇ 17.9 %
           from 513  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇ 9.1 %

     strategy               padding  docs split  docs truncated  tokens lost  batches  attn FLOPs
     pad to max              62.7 %           –           9.1 %       15.3 %      266       1.00×
     length buckets ×8       12.8 %           –           9.1 %       15.3 %      118       0.26×
     first-fit, 64 bins       3.1 %       9.1 %               –            –      121       0.45×
     best-fit, 64 bins        2.3 %       9.1 %               –            –      120       0.45×
     window best-fit, 1024    0.1 %       9.1 %               –            –      117       0.44×
     concat then split        0.0 %      37.2 %               –            –      117       0.44×

    ▶ window_pack: padding 62.7 % → 0.1 %, 2.3× fewer batches; splits only documents longer than a row
      - window_pack: {length: {tokens: 512}, over_long: split}
      - batch: {batch_size: 8}
    ");
}

#[test]
fn what_is_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let ones = "1, ".repeat(99);
    write(folder, "c.jsonl", &format!("{{\"text\": \"a\", \"ids\": [{ones}2], \"score\": 0.5, \"none\": null}}\n"));
    insta::assert_snapshot!(ok(folder, &["inspect", "c.jsonl"]), @r#"
    c.jsonl
    jsonl · 351 B · 1 record · 351 B on average

     column  in the first record
     text    text
     ids     int64[100]
     score   float64[]
     none    null

    record 0
      text: "a"
      ids: [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1…
      score: 0.5
      none: null
    "#);
}

/// Python's `zipfile`, deflated: `tokens`, three `<i4`, and `mask`, 2 × 2 `|u1`.
#[cfg(feature = "compress")]
const NPZ: &str = "504b030414000000080000002100a7996b154d0000008c0000000a000000746f6b656e732e6e70799bec17ea1b10c9c850c650ad9e925a\
    9c5ca46ea5a06e9369a2aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91ac63a9a3a0ab50a14002e760606\
    060e20e6046200504b030414000000080000002100e11d80aa4a00000084000000080000006d61736b2e6e70799bec17ea1b10c9c850c6\
    50ad9e925a9c5ca46ea5a05e536aa8aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a463a0a469a3a0ab5\
    0a64032e4606464600504b0102140314000000080000002100a7996b154d0000008c0000000a0000000000000000000000800100000000\
    746f6b656e732e6e7079504b0102140314000000080000002100e11d80aa4a000000840000000800000000000000000000008001750000\
    006d61736b2e6e7079504b050600000000020002006e000000e50000000000";

#[test]
fn what_is_in_arrays_and_ids() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("train.bin"), [1, 0, 2, 0, 3, 0, 0, 1]).unwrap();
    insta::assert_snapshot!(ok(folder, &["inspect", "train.bin", "--layout", "u16"]), @r"
    train.bin
    tokens · 8 B · 4 tokens

     column  in the first record
     tokens  uint16[4]

    record 0
      tokens: [1,2,3,256]
    ");
    let (code, text) = fails(folder, &["inspect", "train.bin"]);
    assert_eq!(code, 2);
    assert!(text.contains("train.bin: nothing in a bare file of ids says how wide they are"), "{text}");
    assert!(
        text.contains(
            "help: name it: layout u16 (GPT-2's vocabulary, as in nanoGPT) or u32; --layout on the command line"
        ),
        "{text}"
    );
    #[cfg(feature = "compress")]
    {
        let byte = |at: usize| u8::from_str_radix(&NPZ[at..at + 2], 16).unwrap();
        std::fs::write(folder.join("a.npz"), (0..NPZ.len()).step_by(2).map(byte).collect::<Vec<_>>()).unwrap();
        insta::assert_snapshot!(ok(folder, &["inspect", "a.npz"]), @r#"
        a.npz
        npz · 361 B · 1 record · 361 B on average

         column  in the first record
         tokens  int32[3]
         mask    uint8[2, 2]

        record 0
          tokens: [7,8,9]
          mask: "uint8[2, 2]"
        "#);
    }
}

#[test]
fn what_the_commands_are() {
    let folder = tempfile::tempdir().unwrap();
    let help = ok(folder.path(), &["-h"]);
    insta::assert_snapshot!(help, @r"
    Feeds training jobs: runs data pipelines and says where their time goes

    Usage: gristmill [OPTIONS] <COMMAND>

    Commands:
      run              Runs a pipeline file and reports where the time went
      bench            Measures how fast a pipeline delivers, over settings and runs
      demo             Generates text, packs it into batches and reports; needs nothing else
      report           Shows what a recorded run waited for, also if it was killed
      top              Shows what a run on this machine waits for, while it runs
      inspect          Shows the format, the columns and the first records of files
      analyze-padding  Shows what padding costs on your documents, and what removes it
      explain          Shows the stages of a pipeline file, their memory and the elements they make
      plan             Shows what a run will see: shares by tokens, epochs, padding, stragglers
      convert          Writes data in another format, in shards
      tokenise         Writes text as token ids, in shards
      index            Builds indices of text, TFRecord and tar files ahead of a run
      hash             Adds up row digests of several hosts or runs
      verify           Reads everything and lists what is damaged
      which            Shows the records of a batch of a logged run
      when             Shows every batch of a logged run that has a record
      audit            Plans a logged run again and compares it with its log
      replay           Writes batches of a logged run again, with their records
      tune             Finds the number of threads and the memory that a pipeline needs
      doctor           Checks this machine, and prints the command that fixes each problem
      stages           Lists the sources and stages that a pipeline file can name
      schema           Prints the JSON Schema of pipeline files, for editors
      completions      Prints the completion script of a shell
      man              Writes manual pages
      help             Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version

    Global options:
      -v, --verbose...  Print notes of the library, too; -vv prints all of them
      -q, --quiet       Print results and errors only

    Examples:
      gristmill demo                      generated text becomes packed batches
      gristmill inspect data/*.parquet    format, columns and records of files
      gristmill run pipeline.yaml         a run of a pipeline file, and its report

    `gristmill COMMAND -h` lists options, `gristmill COMMAND --help` explains them.
    ");
    let long = ok(folder.path(), &["--help"]);
    insta::assert_snapshot!(long.split_once("explains them.\n\n").unwrap().1, @r"
    Exit codes:
      0    done (also if the reader of stdout has gone away)
      1    something is wrong with the data or with a saved state
      2    could not run: arguments, pipeline file, missing files
      130  interrupted, after the state was saved
      131  stopped at once by a second Ctrl-C, before the state was saved

    Results go to stdout, everything else to stderr. --json turns results into JSON.
    NO_COLOR is respected.
    ");
}

#[test]
fn what_run_takes() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(ok(folder.path(), &["run", "-h"]), @r"
    Runs a pipeline file and reports where the time went

    Usage: gristmill run [OPTIONS] <PIPELINE>

    Arguments:
      <PIPELINE>  The pipeline file

    Options:
          --resume            Continue from the saved state, and save it at the end
          --restart           Begin anew although a state is saved
          --accept-changes    Resume although the pipeline file or its data has changed
          --checkpoint <DIR>  Folder of the saved state [default: that of the pipeline file]
          --steps <N>         Stop after N batches
          --step-time <TIME>  Time of a training step, such as 5ms, 0.3s or 800us [default: none]
      -h, --help              Print help (see more with '--help')

    Threads and processes:
          --threads <N|auto>        Threads of this process instead of worker processes, or `auto`,
                                    which tunes their number
          --inline[=<true|false>]   One thread, which reads nothing ahead
          --buffer <N>              Batches kept ready for the consumer [default: 2]
          --timeout <SECONDS>       Seconds after which a wait for an element is an error [default: no
                                    limit]
          --workers <N>             Worker processes; 0 starts none [default: 1, with a thread for every
                                    core]
          --max-workers <N>         Maximum number of worker processes if it is tuned [default: 1]
          --threads-per-worker <N>  Threads of each worker process
          --ram <BYTES>             Memory of worker processes, such as 2GiB [default: a quarter of what
                                    is available]
          --on <ray://CLUSTER>      Actors of a Ray cluster instead of worker processes

    Several hosts:
          --part <INDEX/COUNT>             Part of the rows of each batch to deliver, such as 3/64 for
                                           the fourth of 64 hosts [default: all rows]
          --keys <PATH>                    Folder of key files, by which rows of other hosts are planned
                                           [default: NAME.keys beside the pipeline file, if it exists]
          --record-keys[=<true|false>]     Whether missing key files are written during the run, for the
                                           next start
          --deal <DEAL>                    How rows are dealt among parts [default: even]
          --guard <PATH>                   Folder in which hosts compare their data
          --guard-timeout <SECONDS>        Seconds after which a silent host is an error [default: 600]
          --on-failed-element <error|pad>  What to do if an element fails after its row was planned:
                                           `error` ends the run, `pad` delivers padding and counts it
                                           [default: error]
          --failed-element-limit <N>       Maximum number of elements that become padding [default: no
                                           limit]

    Changes of the data:
          --edits <EDITS>  Changes of the batches, each from a batch on: a file in YAML or JSON, or a
                           list

    Views of the run:
          --metrics <METRICS>   Address at which the figures of the run are served to Prometheus
          --top[=<true|false>]  Whether `gristmill top` may look at the run

    Files of the run:
          --record <PATH>  Recording of the run, a file for `gristmill report`
          --trace <PATH>   Trace of the run, a file for ui.perfetto.dev and chrome://tracing
          --ledger <PATH>  Run log, a file for `gristmill which`, `when`, `audit` and `replay`

    Output:
          --html <FILE>  Write a page that shows what happened when, and why the consumer waited
          --json         Print one JSON object instead of text
          --order-hash   Print only the order hash

    Global options:
      -v, --verbose...  Print notes of the library, too; -vv prints all of them
      -q, --quiet       Print results and errors only
    ");
}

#[test]
fn what_to_try_after_the_demo() {
    let folder = tempfile::tempdir().unwrap();
    let text = ok(folder.path(), &["demo", "--mb", "1"]);
    let exe = env!("CARGO_BIN_EXE_gristmill");
    let next = text.split_once("\nwhat to try").unwrap().1.replace(exe, "gristmill");
    insta::assert_snapshot!(next, @r"
    next
     # the same order hash on one thread of this process, and in two worker processes
     gristmill run gristmill-demo/pipeline.yaml --inline
     gristmill run gristmill-demo/pipeline.yaml --workers 2 --ram 1GiB
     # stop after 100 batches, then go on: again the same
     gristmill run gristmill-demo/pipeline.yaml --steps 100
     gristmill run gristmill-demo/pipeline.yaml --resume
     # what the pipeline file means, and what is in the corpus
     gristmill explain gristmill-demo/pipeline.yaml
     gristmill inspect gristmill-demo/corpus.jsonl
     # what padding would have cost
     gristmill analyze-padding gristmill-demo/corpus.jsonl --tokenizer gristmill-demo/demo.tokenizer.json
    ");
}
