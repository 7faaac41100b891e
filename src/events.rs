//! Events of the library while it runs, as lines of text: warnings, and more on request.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Function that receives each event with its level.
pub(crate) type Listener = fn(Level, &str);

static LISTENER: RwLock<Listener> = RwLock::new(nobody);

fn nobody(_: Level, _: &str) {}

/// Maximum level of reported events, as a number.
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

/// Reports events up to `level`, instead of warnings. Call it before [`listen`], because the level is checked once for each event.
pub(crate) fn set_level(level: Level) {
    MOST.store(number(level), Ordering::Relaxed);
}

/// Reports events to `listener` only, from now on. If the program has another `tracing` subscriber, that subscriber stays.
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

    // Spans are not enabled, so no span is ever made.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Message of an event, then the other fields as `name=value`.
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
