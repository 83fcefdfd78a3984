// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads a program: its file, the files it imports, and the library files of the elements it uses
//! without defining them. Each file is read once, even if it is imported repeatedly or in a cycle.
//!
//! The parser has to know which names are types, so once all files are loaded, each is parsed again
//! with the types of all its direct and indirect imports. Files that import it do not affect it,
//! nor do library files found by an element's name.

use crate::ast::{ConfigStatement, File, Import, Name, TopItem};
use crate::diagnostic::Diagnostic;
use crate::library::{FILE_BYTES_MAX, Index, read};
use crate::parser::parse_file_knowing;
use crate::source::{SourceMap, Span};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Parsed files.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Files by number; the first is the program's own.
    pub files: Vec<File>,
    /// Source texts.
    pub sources: SourceMap,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Folders of library elements.
    pub library: Vec<PathBuf>,
}

/// Loads the program in the file `path`. `library` lists folders, searched in order.
pub fn load_file(path: &Path, library: &[PathBuf]) -> Loaded {
    let mut loader = Loader::new(library);
    loader.beside = path.parent();
    loader.seen.extend(path.canonicalize().map(|path| (path, Some(0))));
    match read(path) {
        Ok(text) => loader.load(path, text),
        Err(error) => {
            let file = loader.loaded.sources.add(path, "");
            loader.loaded.files.push(File::default());
            let message = format!("cannot read `{}`: {error}", path.display());
            let span = Span { file, start: 0, end: 0 };
            loader.loaded.diagnostics.push(Diagnostic::error("E0517", span, message));
            loader.loaded
        }
    }
}

/// Loads the program in `text`. Imports are relative to the folder of `name`.
pub fn load_text(name: &Path, text: impl Into<String>, library: &[PathBuf]) -> Loaded {
    Loader::new(library).load(name, text.into())
}

struct Loader<'a> {
    library: &'a [PathBuf],
    /// Folder of the program, if it is in a file.
    beside: Option<&'a Path>,
    index: Option<Index>,
    /// Files that were read, by canonical path; `None` for unreadable ones.
    seen: HashMap<PathBuf, Option<usize>>,
    /// By file number: its imports.
    imports: Vec<Vec<usize>>,
    loaded: Loaded,
}

impl<'a> Loader<'a> {
    fn new(library: &'a [PathBuf]) -> Self {
        let (seen, imports) = (HashMap::new(), vec![]);
        let loaded = Loaded { library: library.to_vec(), ..Loaded::default() };
        Self { library, beside: None, index: None, seen, imports, loaded }
    }

    fn load(mut self, path: &Path, text: String) -> Loaded {
        self.add(path, text);
        // Files are appended during the loop.
        let mut at = 0;
        let mut missing = HashSet::new();
        while at < self.loaded.files.len() {
            for import in imports_of(&self.loaded.files[at]) {
                self.import(at, &import);
            }
            at += 1;
            if at == self.loaded.files.len() {
                self.find_undefined(&mut missing);
            }
        }
        self.parse_again();
        self.loaded
    }

    /// Parses every file with the types it can use; this time errors are reported.
    fn parse_again(&mut self) {
        let Loaded { files, sources, diagnostics, .. } = &mut self.loaded;
        let types: Vec<HashSet<String>> =
            (0..files.len()).map(|file| types_of(file, files, &self.imports)).collect();
        for (number, (file, types)) in files.iter_mut().zip(types).enumerate() {
            *file = parse_file_knowing(sources, number as u32, &types, diagnostics);
        }
    }

    fn add(&mut self, path: &Path, text: String) {
        let is_small = text.len() as u64 <= FILE_BYTES_MAX;
        let file = self.loaded.sources.add(path, if is_small { text } else { String::new() });
        if !is_small {
            let message = format!("a text of more than {FILE_BYTES_MAX} bytes");
            let span = Span { file, start: 0, end: 0 };
            self.loaded.diagnostics.push(Diagnostic::error("E0517", span, message));
        }
        let known = HashSet::new();
        let parsed = parse_file_knowing(&self.loaded.sources, file, &known, &mut vec![]);
        self.loaded.files.push(parsed);
        self.imports.push(vec![]);
    }

    /// Reads an imported file: relative to the importing one, otherwise to the library.
    fn import(&mut self, from: usize, import: &Import) {
        let importing = self.loaded.sources.files()[from].path.clone();
        let folder = importing.parent().unwrap_or(Path::new(""));
        let folders = [folder].into_iter().chain(self.library.iter().map(PathBuf::as_path));
        let mut places: Vec<PathBuf> = vec![];
        for place in folders.map(|folder| folder.join(&import.path)) {
            let is_known = places
                .iter()
                .any(|known| std::path::absolute(known).ok() == std::path::absolute(&place).ok());
            if !is_known {
                places.push(place);
            }
        }
        let Some(found) = places.iter().find(|place| place.exists()) else {
            let message = format!("no file `{}`", import.path);
            let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
            let error = Diagnostic::error("E0516", import.span, message);
            let help = format!("looked for {}", places.join(" and "));
            return self.loaded.diagnostics.push(error.help(help));
        };
        let imported = self.read(found, import.span);
        self.imports[from].extend(imported);
    }

    /// Returns the number of a file, which is read now unless it was before.
    fn read(&mut self, path: &Path, span: Span) -> Option<usize> {
        let canonical = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if let Some(number) = self.seen.get(&canonical) {
            return *number;
        }
        let number = match read(path) {
            Ok(text) => {
                self.add(path, text);
                Some(self.loaded.files.len() - 1)
            }
            Err(error) => {
                let message = format!("cannot read `{}`: {error}", path.display());
                self.loaded.diagnostics.push(Diagnostic::error("E0517", span, message));
                None
            }
        };
        self.seen.insert(canonical, number);
        number
    }

    /// Reads the files of elements that are used but not defined: the file named after the element
    /// beside the program, otherwise the one in the library.
    fn find_undefined(&mut self, missing: &mut HashSet<String>) {
        for name in undefined_of(&self.loaded.files) {
            if !missing.insert(name.text.clone()) {
                continue;
            }
            let file = format!("{}.cnp", name.text);
            let beside = self.beside.map(|folder| folder.join(file)).filter(|it| it.is_file());
            if let Some(path) = beside {
                _ = self.read(&path, name.span);
                continue;
            }
            let library = self.library;
            let index = self.index.get_or_insert_with(|| Index::of(library));
            if let Some(path) = index.file_of(&name.text).map(Path::to_path_buf) {
                _ = self.read(&path, name.span);
            }
        }
    }
}

/// Returns the types that a file declares and imports.
fn types_of(file: usize, files: &[File], imports: &[Vec<usize>]) -> HashSet<String> {
    let mut reached = HashSet::new();
    let mut waiting = vec![file];
    while let Some(file) = waiting.pop() {
        if reached.insert(file) {
            waiting.extend(&imports[file]);
        }
    }
    reached.iter().flat_map(|file| files[*file].type_names()).map(String::from).collect()
}

fn imports_of(file: &File) -> Vec<Import> {
    let import = |item: &TopItem| match item {
        TopItem::Import(import) => Some(import.clone()),
        _ => None,
    };
    file.items.iter().filter_map(import).collect()
}

/// Returns the elements that the program's configuration and groups use, and no file defines.
fn undefined_of(files: &[File]) -> Vec<Name> {
    let mut defined = HashSet::new();
    let mut used = vec![];
    for (at, file) in files.iter().enumerate() {
        for item in &file.items {
            match item {
                TopItem::Element(element) => _ = defined.insert(element.name.text.as_str()),
                TopItem::Group(group) => {
                    defined.insert(group.name.text.as_str());
                    used.extend(group.statements.iter().filter_map(element_used));
                }
                TopItem::Config(statement) if at == 0 => used.extend(element_used(statement)),
                _ => {}
            }
        }
    }
    used.into_iter().filter(|name| !defined.contains(name.text.as_str())).cloned().collect()
}

fn element_used(statement: &ConfigStatement) -> Option<&Name> {
    match statement {
        ConfigStatement::Declare(declaration) if declaration.object.is_some() => None,
        ConfigStatement::Declare(declaration) => Some(&declaration.element),
        ConfigStatement::Connect(_) | ConfigStatement::Manager(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(loaded: &Loaded) -> Vec<String> {
        let files = loaded.sources.files().iter();
        files.map(|file| file.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn circles_of_imports_are_read_once_each() {
        let top = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(top.path().join(name), text).unwrap();
        write("a.cnp", "import \"b.cnp\" import \"./b.cnp\"");
        write("b.cnp", "import \"a.cnp\"; import \"c.cnp\"");
        write("c.cnp", "import \"b.cnp\"");
        let loaded = load_file(&top.path().join("a.cnp"), &[]);
        assert_eq!(loaded.diagnostics.len(), 0);
        assert_eq!(names(&loaded), ["a.cnp", "b.cnp", "c.cnp"]);
    }

    #[test]
    fn types_of_imports_are_types_and_those_of_importers_are_not() {
        let top = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(top.path().join(name), text).unwrap();
        write("a.cnp", "import \"b.cnp\" uint f(uint x) { return (far)-x; } typedef uint own;");
        write("b.cnp", "import \"c.cnp\" uint g(uint x) { const int own = 4; return (own)-x; }");
        write("c.cnp", "import \"a.cnp\" typedef uint far;");
        write("d.cnp", "import \"e.cnp\" typedef uint outer;");
        write("e.cnp", "const int outer = 4; uint g(uint x) { return (outer)-x; }");
        let is_cast = |loaded: &Loaded, file: usize| {
            assert_eq!(loaded.diagnostics.len(), 0);
            let text = format!("{:?}", loaded.files[file].items);
            assert_ne!(text.contains("Cast("), text.contains("Binary(Sub"), "{text}");
            text.contains("Cast(")
        };
        let circle = load_file(&top.path().join("a.cnp"), &[]);
        assert!(is_cast(&circle, 0), "through two imports");
        assert!(!is_cast(&circle, 1), "a variable");
        assert!(!is_cast(&load_file(&top.path().join("d.cnp"), &[]), 1), "no type in that file");
    }

    #[test]
    fn undefined_elements_come_from_the_library() {
        let top = tempfile::tempdir().unwrap();
        let basic = top.path().join("basic");
        fs::create_dir(&basic).unwrap();
        fs::write(basic.join("A.cnp"), ".element A (flit in -> flit out) { }").unwrap();
        fs::write(basic.join("B.cnp"), "group B (flit in -> flit out) { A :: a }").unwrap();
        fs::write(basic.join("C.cnp"), ".element C (->) { }").unwrap();
        let loaded =
            load_text(Path::new("x.cnp"), "B :: b Nothing :: n", &[top.path().to_path_buf()]);
        assert_eq!(loaded.diagnostics.len(), 0);
        assert_eq!(names(&loaded), ["x.cnp", "B.cnp", "A.cnp"]);
    }

    #[test]
    fn byte_order_marks_are_passed_over() {
        let top = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(top.path().join(name), text).unwrap();
        write("A.cnp", "\u{feff}import \"b.cnp\" .element A (->) { uint }");
        write("b.cnp", "\u{feff}.element B (->) { }");
        let text = "\u{feff}A :: a";
        let loaded = load_text(Path::new("x.cnp"), text, &[top.path().to_path_buf()]);
        assert_eq!(names(&loaded), ["x.cnp", "A.cnp", "b.cnp"]);
        let codes: Vec<_> = loaded.diagnostics.iter().map(|one| one.code).collect();
        assert_eq!(codes, ["E0110"], "what stands behind it is read as ever");
        let shown = loaded.diagnostics[0].render(&loaded.sources);
        assert!(shown.contains("1 | import") && shown.contains("A.cnp:1:39"), "{shown}");
        assert_eq!(loaded.sources.files()[0].text, "A :: a");
    }

    #[test]
    fn a_file_that_is_missing_is_looked_for_once_in_each_folder() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("a.cnp");
        fs::write(&file, "import \"none.cnp\"").unwrap();
        let library = [top.path().to_path_buf(), top.path().join("."), "elsewhere".into()];
        let loaded = load_file(&file, &library);
        let help = loaded.diagnostics[0].help.clone().unwrap();
        let here = top.path().join("none.cnp");
        assert_eq!(help, format!("looked for {} and elsewhere/none.cnp", here.display()));
    }

    #[test]
    fn elements_in_files_of_their_names_are_found_beside_the_program() {
        let top = tempfile::tempdir().unwrap();
        let library = top.path().join("library");
        fs::create_dir(&library).unwrap();
        fs::write(library.join("A.cnp"), ".element A (flit in -> flit out) { }").unwrap();
        fs::write(top.path().join("A.cnp"), ".element A (->) { }").unwrap();
        fs::write(top.path().join("others.cnp"), ".element B (->) { }").unwrap();
        let program = top.path().join("x.cnp");
        fs::write(&program, "A :: a B :: b").unwrap();
        let loaded = load_file(&program, std::slice::from_ref(&library));
        assert_eq!(names(&loaded), ["x.cnp", "A.cnp"], "B may be in any file");
        assert!(loaded.sources.files()[1].path.starts_with(top.path()));
        assert!(!loaded.sources.files()[1].path.starts_with(library));
    }

    #[test]
    fn what_cannot_be_read_is_a_diagnostic() {
        let loaded = load_text(Path::new("/x/y.cnp"), "import \"z.cnp\" import \"/\"", &[]);
        let codes: Vec<_> = loaded.diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
        assert_eq!(codes, ["E0516", "E0517"]);
        assert!(loaded.diagnostics[0].help.as_ref().unwrap().contains("/x/z.cnp"));
        let loaded = load_file(Path::new("/x/none.cnp"), &[]);
        assert_eq!(loaded.diagnostics[0].code, "E0517");
        assert!(loaded.diagnostics[0].render(&loaded.sources).contains("none.cnp:1:1"));
    }
}
