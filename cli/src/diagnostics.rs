// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--log` and `FREEPORT_LOG`: events of this process on standard error, by level and by the module
//! they are from.
//!
//! Lines of a [monitor's log](monitor_line) are events too, but are written unchanged and
//! regardless of the filter: that log has its own format and rate limit.

use clap::Args;
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::fmt::format::{Format, FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer};

/// The variable that is used where there is no option.
const VARIABLE: &str = "FREEPORT_LOG";
/// Marks lines of a monitor's log.
const MONITOR_LOG: &str = "freeport::monitor_log";

/// `--log`, on the command line of `freeport` and of commands that run for long.
#[derive(Args, Clone, Debug, Default)]
pub struct LogArguments {
    /// Report events on standard error: a level (`error`, `warn`, `info`, `debug`, `trace` or
    /// `off`), or levels of modules such as `freeport_monitor=debug` [default: $FREEPORT_LOG, or
    /// warn for commands that run for long]
    #[arg(long = "log", value_name = "LEVEL|FILTER")]
    filter: Option<Filter>,
}

/// Which events are reported, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(String);

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The parser takes any word for a module.
        let is_known = |part: &str| {
            part.contains('=')
                || part.starts_with("freeport")
                || LevelFilter::from_str(part).is_ok()
        };
        let unknown = text.split(',').find(|part| part.is_empty() || !is_known(part));
        let reason = match (unknown, EnvFilter::try_new(text)) {
            (None, Ok(_)) => return Ok(Self(text.to_owned())),
            (Some(part), _) => format!("`{part}` is not a level"),
            (None, Err(error)) => error.to_string(),
        };
        Err(format!(
            "{reason}; expected a level (error, warn, info, debug, trace or off), or levels of \
             modules, such as freeport_monitor=debug"
        ))
    }
}

/// How a command reports events.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics<'a> {
    /// Its own options, which come before those of `freeport`.
    pub log: Option<&'a LogArguments>,
    /// Whether it runs for long, so that warnings are reported without an option.
    pub runs_long: bool,
    /// Whether events are JSON objects, one a line.
    pub is_json: bool,
}

impl Diagnostics<'_> {
    /// Installs the subscriber. The filter is the option of the command, else that of `freeport`,
    /// else the environment variable.
    ///
    /// # Errors
    /// The variable is not a filter.
    pub fn begin(&self, log: &LogArguments) -> anyhow::Result<()> {
        let option = self.log.and_then(|own| own.filter.as_ref()).or(log.filter.as_ref());
        let variable = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
        let filter = match (option, variable) {
            (Some(filter), _) => filter.clone(),
            (None, Some(text)) => {
                text.parse().map_err(|error| anyhow::anyhow!("{VARIABLE} is `{text}`: {error}"))?
            }
            (None, None) => Filter(if self.runs_long { "warn" } else { "off" }.to_owned()),
        };
        let is_event = filter_fn(|about| about.target() != MONITOR_LOG);
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(Quiet)
            .with_ansi(false)
            .log_internal_errors(false)
            .event_format(Style { is_json: self.is_json, text: Format::default().with_ansi(false) })
            .with_filter(EnvFilter::new(&filter.0).and(is_event));
        let is_line = filter_fn(|about| about.target() == MONITOR_LOG);
        let lines = Lines.with_filter(is_line.with_max_level_hint(LevelFilter::INFO));
        let subscriber = tracing_subscriber::registry().with(layer).with(lines);
        // A subscriber exists already only in tests.
        let _ = tracing::subscriber::set_global_default(subscriber);
        Ok(())
    }
}

/// Writes a line of a monitor's log.
pub fn monitor_line(line: &str) {
    tracing::info!(target: MONITOR_LOG, line);
}

/// Standard error. Text that cannot be written is dropped: there is no other place to report it.
struct Quiet;

impl Write for Quiet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Quiet {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self
    }
}

/// An event as text, or as a JSON object whose `event` is its message.
struct Style {
    is_json: bool,
    text: Format,
}

impl<S, N> FormatEvent<S, N> for Style
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if !self.is_json {
            return self.text.format_event(context, writer, event);
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let about = event.metadata();
        let mut object = json!({
            "event": fields.0.remove("message"),
            "level": about.level().as_str(),
            "target": about.target(),
        });
        for (name, value) in fields.0 {
            object[name] = value;
        }
        writeln!(writer, "{object}")
    }
}

/// The fields of an event, by name.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

/// Writes lines of a monitor's log.
struct Lines;

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if let Some(line) = fields.0.get("line").and_then(Value::as_str) {
            eprintln!("{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_levels_or_levels_of_modules() {
        for text in ["warn", "off", "freeport_monitor=debug", "info,freeport_runtime::server=trace"]
        {
            assert_eq!(text.parse::<Filter>(), Ok(Filter(text.into())));
        }
        for text in ["freeport_monitor=loud", "loud", "info,loud", ""] {
            let error = text.parse::<Filter>().unwrap_err();
            assert!(error.contains("expected a level"), "{error}");
        }
    }
}
