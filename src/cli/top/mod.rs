//! `gristmill top`: a live view of a run on this machine.

mod screen;
mod seen;

use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use self::screen::draw;
use self::seen::{Seen, Tab};
use crate::cli::format::count;
use crate::cli::{Outcome, examples, output};
use crate::live::top::{Frame, Place, connect, places};
use crate::{Error, ErrorKind, Result};

/// Shows what a run on this machine waits for, while it runs
///
/// The run is a Rust or Python program of the same user. It offers its view if it is started with --top, top=True, or GRISTMILL_TOP=1 in its
/// environment. Keys: s stages, w workers, e worst elements, q the end. The report as of now is printed if stdout is no terminal.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill top"
    "gristmill top 4711"
))]
pub(crate) struct Args {
    /// The process, or PID.NUMBER of one of its passes [default: the only one; several are listed]
    #[arg(value_name = "PID")]
    pid: Option<String>,
}

/// Maximum size of a frame in bytes.
const MOST_BYTES: u64 = 64 << 20;
/// Maximum wait for a key before the next check for frames.
const LOOK: Duration = Duration::from_millis(100);
/// Maximum wait for the first frame.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let there = places()?;
    let found: Vec<&Place> = match &args.pid {
        Some(pid) => there.iter().filter(|place| is_asked_for(place, pid)).collect(),
        None => there.iter().collect(),
    };
    let place = match (found[..].first(), &args.pid) {
        (Some(place), Some(_)) => place,
        (Some(place), None) if found.iter().all(|other| other.pid == place.pid) => place,
        (Some(_), None) => return list(&found),
        (None, asked) => {
            let what = asked.as_ref().map_or_else(|| "no run".to_owned(), |pid| format!("no run of process {pid}"));
            let error = Error::config(format!("{what} offers a live view"));
            return Err(error.help("start it with --top, loader(top=True), or GRISTMILL_TOP=1 in its environment"));
        }
    };
    let stream = connect(place)?;
    if !std::io::stdout().is_terminal() {
        output::data(&first(&stream)?.report.to_string());
        return Ok(Outcome::Done);
    }
    watch(stream).map_err(Error::of_io)?;
    Ok(Outcome::Done)
}

/// Returns true if `text` names this pass or its process.
fn is_asked_for(place: &Place, text: &str) -> bool {
    text == place.pid.to_string() || text == format!("{}.{}", place.pid, place.number)
}

/// Lists the runs on this machine.
fn list(places: &[&Place]) -> Result<Outcome> {
    for place in places {
        // A run may end in the meantime.
        let Ok(frame) = connect(place).and_then(|stream| first(&stream)) else { continue };
        let delivered = count(frame.report.delivered as f64);
        output::data(&format!("{}.{}  {delivered} batches  {}\n", place.pid, place.number, frame.command));
    }
    output::say(&format!("look at one of them with: {} top PID", output::program()));
    Ok(Outcome::Done)
}

/// Returns the first frame of a pass.
fn first(stream: &UnixStream) -> Result<Frame> {
    stream.set_read_timeout(Some(PATIENCE)).map_err(Error::of_io)?;
    next(&mut BufReader::new(stream))?.ok_or_else(|| Error::new(ErrorKind::Io, "the run is over"))
}

/// Returns the next frame; `None` if the run is over.
fn next(from: &mut impl BufRead) -> Result<Option<Frame>> {
    let mut line = Vec::new();
    from.take(MOST_BYTES).read_until(b'\n', &mut line).map_err(Error::of_io)?;
    if let Some(b'\n') = line.last() {
        let frame = serde_json::from_slice(&line);
        frame.map(Some).map_err(|e| {
            let error = Error::new(ErrorKind::Io, format!("the run uses another protocol: {e}"));
            error.help("look at it with the version of gristmill that it runs")
        })
    } else {
        Ok(None)
    }
}

/// Shows frames until the user quits.
fn watch(stream: UnixStream) -> std::io::Result<()> {
    let frames = frames(stream);
    let mut terminal = ratatui::try_init()?;
    let shown = (|| {
        let mut seen = Seen::new(std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()));
        let mut is_new = true;
        loop {
            if std::mem::take(&mut is_new) {
                terminal.draw(|frame| draw(frame, &seen))?;
            }
            if event::poll(LOOK)? {
                is_new = true;
                if !act(&event::read()?, &mut seen) {
                    return Ok(());
                }
            }
            for told in frames.try_iter() {
                is_new = true;
                match told {
                    Ok(frame) => seen.add(*frame),
                    Err(why) => seen.over = Some(why),
                }
            }
        }
    })();
    let restored = ratatui::try_restore();
    shown.and(restored)
}

/// Handles a key. Returns false if the key ends the view.
fn act(event: &Event, seen: &mut Seen) -> bool {
    let Event::Key(key) = event else { return true };
    if key.kind == KeyEventKind::Release {
        return true;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char('s') => seen.tab = Tab::Stages,
        KeyCode::Char('w') => seen.tab = Tab::Workers,
        KeyCode::Char('e') => seen.tab = Tab::Elements,
        _ => {}
    }
    true
}

/// Returns a channel of frames. Its last item is the reason why no more frames follow.
fn frames(stream: UnixStream) -> Receiver<std::result::Result<Box<Frame>, String>> {
    let (sender, frames) = bounded(4);
    std::thread::spawn(move || {
        let mut from = BufReader::new(stream);
        loop {
            let (told, is_over) = match next(&mut from) {
                Ok(Some(frame)) => (Ok(Box::new(frame)), false),
                Ok(None) => (Err("the run is over".to_owned()), true),
                Err(error) => (Err(error.to_string()), true),
            };
            if sender.send(told).is_err() || is_over {
                return;
            }
        }
    });
    frames
}
