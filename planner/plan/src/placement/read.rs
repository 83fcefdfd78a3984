// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading plan files and placement files.

use super::{Placement, PlanFile, Setting, Settings, VERSION};
use crate::file::{Fields, FileError, Reader};
use crate::function::Service;

/// Distance from 1 that shares may have together.
const SUM_ERROR: f64 = 1e-3;

impl Placement {
    /// Reads a placement file from its text; the file's name appears in errors.
    ///
    /// # Errors
    /// The text is not a complete and consistent placement of this version.
    pub fn parse(file: &str, text: &str) -> Result<Self, FileError> {
        Reader::new(file, text).read(|root| {
            check_form(root, "placement")?;
            root.only(&["kind", "version", "replication", "get"])?;
            let mut placement = Self::default();
            for service in Service::ALL {
                if let Some(fields) = root.table_if_there(service.name())? {
                    placement.services.insert(service, settings(&fields)?);
                }
            }
            match placement.services.is_empty() {
                true => Err(root.error("", "it has no service: neither replication nor get")),
                false => Ok(placement),
            }
        })
    }
}

impl PlanFile {
    /// Reads a plan file from its text; the file's name appears in errors.
    ///
    /// # Errors
    /// The text is not a complete and consistent plan of this version.
    pub fn parse(file: &str, text: &str) -> Result<Self, FileError> {
        Reader::new(file, text).read(|root| {
            check_form(root, "plan")?;
            root.only(&[
                "kind",
                "version",
                "service",
                "function",
                "device",
                "millions_per_second",
                "limited_by",
                "shares",
            ])?;
            Ok(Self {
                service: root.parsed("service")?,
                function: root.text("function")?.to_owned(),
                device: root.text("device")?.to_owned(),
                rate: root.number("millions_per_second", 0.0..=1e9)?,
                limit: root.text("limited_by")?.to_owned(),
                shares: shares(root)?,
            })
        })
    }
}

fn check_form(root: &Fields<'_>, kind: &str) -> Result<(), FileError> {
    let found = root.text("kind")?;
    if found != kind {
        return Err(root.error("kind", format!("it has to be {kind}, and not {found}")));
    }
    let version = root.whole("version", 0..=u64::from(u32::MAX))?;
    if version != VERSION {
        let problem = format!("this program reads version {VERSION}, and not {version}");
        return Err(root.error("version", problem));
    }
    Ok(())
}

fn settings(fields: &Fields<'_>) -> Result<Settings, FileError> {
    fields.only(&["plan", "function", "device", "shares"])?;
    let plan = fields.text("plan")?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if plan.len() != 64 || !plan.bytes().all(is_digit) {
        return Err(fields.error("plan", "it has to be a SHA-256 of 64 hexadecimal digits"));
    }
    Ok(Settings {
        plan: plan.to_owned(),
        function: fields.text("function")?.to_owned(),
        device: fields.text("device")?.to_owned(),
        shares: shares(fields)?,
    })
}

fn shares(fields: &Fields<'_>) -> Result<Vec<Setting>, FileError> {
    let mut settings: Vec<Setting> = vec![];
    for fields in fields.tables("shares")? {
        let setting = setting(&fields)?;
        if settings.iter().any(|other| other.alternative == setting.alternative) {
            let problem = format!("{} has another share already", setting.alternative);
            return Err(fields.error("alternative", problem));
        }
        settings.push(setting);
    }
    let sum: f64 = settings.iter().map(|setting| setting.share).sum();
    if (sum - 1.0).abs() > SUM_ERROR {
        let problem = format!("all shares together have to be 1, and are {sum}");
        return Err(fields.error("shares", problem));
    }
    Ok(settings)
}

fn setting(fields: &Fields<'_>) -> Result<Setting, FileError> {
    fields.only(&["alternative", "share", "paths", "bytes", "batch", "compression"])?;
    let share = fields.number("share", 0.0..=1.0)?;
    if share == 0.0 {
        return Err(fields.error("share", "0 is no share; leave the alternative out"));
    }
    let mut paths = vec![];
    for name in fields.texts("paths")? {
        let path = name.parse().map_err(|problem: String| fields.error("paths", problem))?;
        if paths.contains(&path) {
            return Err(fields.error("paths", format!("path {name} is there twice")));
        }
        paths.push(path);
    }
    if paths.is_empty() {
        return Err(fields.error("paths", "it has to name at least one path"));
    }
    Ok(Setting {
        alternative: fields.text("alternative")?.to_owned(),
        share,
        paths,
        bytes: fields.whole("bytes", 0..=1 << 30)?,
        batch: fields.whole("batch", 1..=256)? as u32,
        compression: fields.parsed("compression")?,
    })
}
