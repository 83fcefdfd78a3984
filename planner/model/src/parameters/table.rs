// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of parameters: one macro call for a kind of file, and one for each of its sections.

/// Defines a section: a structure with a field for each parameter.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        $Section:ident {
            $(
                $(#[doc = $meaning:literal])*
                $key:ident: $unit:literal, $least:literal..$most:literal;
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, PartialEq, Default, Debug)]
        pub struct $Section {
            $( $(#[doc = $meaning])* #[doc = concat!("Unit: ", $unit, ".")] pub $key: f64, )*
        }

        impl $Section {
            const KEYS: &[$crate::parameters::Key] = &[$(
                $crate::parameters::Key {
                    name: stringify!($key),
                    unit: $unit,
                    least: $least as f64,
                    most: $most as f64,
                    meaning: concat!($($meaning),*),
                },
            )*];

            /// Returns the value of a parameter of the section, by its name.
            pub fn value(&self, key: &str) -> Option<f64> {
                { *self }.value_mut(key).copied()
            }

            fn value_mut(&mut self, key: &str) -> Option<&mut f64> {
                match key {
                    $( stringify!($key) => Some(&mut self.$key), )*
                    _ => None,
                }
            }
        }
    };
}

/// Defines a kind of file: a structure with a field for each section. The structure needs a method
/// `contradiction`.
macro_rules! profile {
    (
        $(#[doc = $whole:literal])*
        $Profile:ident, $kind:literal, $complete:literal;
        $( $(#[doc = $about:literal])* $section:ident: $Section:ident, )*
    ) => {
        $(#[doc = $whole])*
        #[derive(Clone, PartialEq, Default, Debug)]
        pub struct $Profile {
            /// Its name in reports.
            pub name: String,
            $( $(#[doc = $about])* pub $section: $Section, )*
            /// Where the values come from, by names of parameters such as `switch.pass`.
            pub origins: std::collections::BTreeMap<String, $crate::parameters::Origin>,
        }

        /// All sections and their parameters, in the order of files.
        pub const SECTIONS: &[$crate::parameters::Section] =
            &[$((stringify!($section), $Section::KEYS)),*];

        impl $Profile {
            /// Returns the value of a parameter, by a name such as `switch.pass`.
            pub fn value(&self, name: &str) -> Option<f64> {
                let (section, key) = name.split_once('.')?;
                $crate::parameters::Parameters::place(&mut self.clone(), section, key).copied()
            }

            /// Changes the value of a parameter, by a name such as `switch.pass`. Returns whether
            /// there is such a parameter.
            pub fn set_value(&mut self, name: &str, value: f64) -> bool {
                let name = name.split_once('.');
                let place = name.and_then(|(section, key)| {
                    $crate::parameters::Parameters::place(self, section, key)
                });
                place.map(|place| *place = value).is_some()
            }
        }

        impl $crate::parameters::Parameters for $Profile {
            const KIND: &'static str = $kind;
            const COMPLETE: &'static str = $complete;
            const SECTIONS: &'static [$crate::parameters::Section] = SECTIONS;

            fn name_mut(&mut self) -> &mut String {
                &mut self.name
            }

            fn origins_mut(
                &mut self,
            ) -> &mut std::collections::BTreeMap<String, $crate::parameters::Origin> {
                &mut self.origins
            }

            fn place(&mut self, section: &str, key: &str) -> Option<&mut f64> {
                match section {
                    $( stringify!($section) => self.$section.value_mut(key), )*
                    _ => None,
                }
            }

            fn contradiction(&self) -> Option<(&'static str, String)> {
                $Profile::contradiction(self)
            }
        }
    };
}

pub(crate) use {profile, section};
