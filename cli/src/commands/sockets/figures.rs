// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers in columns: three digits and a unit.

/// A count or a rate: `7`, `7.25`, `812`, `1.25k`, `33.5M`.
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let units = ["", "k", "M", "G", "T", "P", "E"];
    let (mut value, mut unit) = (value, 0);
    while value.abs() >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{}{}", digits(value), units[unit])
}

/// Three digits, without trailing zeroes.
fn digits(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A share from 0 to 1, in percent.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |it| format!("{:.0}%", 100.0 * it))
}

/// A gain: `12x`.
pub fn times(gain: Option<f64>) -> String {
    gain.map_or_else(|| "-".to_owned(), |it| format!("{}x", short(it)))
}

/// A time: `350ms`, `12.5s`, `3.2h`.
pub fn time(seconds: f64) -> String {
    match seconds.abs() {
        0.0 => "0s".to_owned(),
        size if size < 0.9995 => format!("{}ms", digits(seconds * 1000.0)),
        size if size < 999.5 => format!("{}s", digits(seconds)),
        _ => format!("{}h", short(seconds / 3600.0)),
    }
}

/// The text, padded to that many columns, or cut and marked with `~`.
pub fn column(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return format!("{text}{:1$}", "", width - length);
    }
    text.chars().take(width.saturating_sub(1)).chain(['~']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        for (value, shown) in [
            (0.0, "0"),
            (7.0, "7"),
            (7.254, "7.25"),
            (99.97, "100"),
            (812.0, "812"),
            (999.6, "1k"),
            (1250.0, "1.25k"),
            (33_500_000.0, "33.5M"),
            (-2000.0, "-2k"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(short(value), shown, "{value}");
        }
        assert_eq!([0.0, 0.35, 12.5, 7200.0].map(time), ["0s", "350ms", "12.5s", "2h"]);
        assert_eq!((percent(Some(0.126)), percent(None)), ("13%".to_owned(), "-".to_owned()));
        assert_eq!((times(Some(12.04)), times(None)), ("12x".to_owned(), "-".to_owned()));
    }

    #[test]
    fn columns_are_as_wide_as_they_are() {
        assert_eq!(column("grüße", 6), "grüße ");
        assert_eq!(column("redis-server", 6), "redis~");
    }
}
