//! Words that the library has to say while it runs: warnings, and more where it is asked for, each as a line of text.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Whom they are told, each with its level.
pub(crate) type Listener = fn(Level, &str);

static LISTENER: RwLock<Listener> = RwLock::new(nobody);

fn nobody(_: Level, _: &str) {}

/// The level as a number, of which those above are not told.
static MOST: AtomicUsize = AtomicUsize::new(number(Level::WARN));

const fn number(level: Level) -> usize {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    }
}

/// Has events up to `level` told, in place of warnings: before any [listens](listen), as it is asked once for each event.
#[cfg(feature = "cli")]
pub(crate) fn set_level(level: Level) {
    MOST.store(number(level), Ordering::Relaxed);
}

/// From here on `listener` is told, and nobody else. Where a program has a subscriber of its own, that is.
pub(crate) fn listen(listener: Listener) {
    *LISTENER.write().unwrap_or_else(PoisonError::into_inner) = listener;
    let _ = tracing::subscriber::set_global_default(Events);
}

struct Events;

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && number(*metadata.level()) <= MOST.load(Ordering::Relaxed)
            && metadata.target().starts_with("gristmill")
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let listener = *LISTENER.read().unwrap_or_else(PoisonError::into_inner);
        listener(*event.metadata().level(), &text.0);
    }

    // Spans are not enabled, so none is ever made.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The message, and the other fields as `name=value`.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = &mut self.0;
        let gap = if text.is_empty() { "" } else { " " };
        let _ = match field.name() {
            "message" => write!(text, "{gap}{value:?}"),
            name => write!(text, "{gap}{name}={value:?}"),
        };
    }
}
