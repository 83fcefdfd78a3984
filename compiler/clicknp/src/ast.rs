// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The syntax tree of a source file as written: names are not resolved, and nothing is typed.

pub(crate) mod walk;

use crate::source::Span;
use num_bigint::BigUint;

/// A source file.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Items in order of appearance.
    pub items: Vec<TopItem>,
}

impl File {
    /// Returns the names of the types that it declares at its top level.
    pub fn type_names(&self) -> impl Iterator<Item = &str> {
        fn name(item: &TopItem) -> Option<&Name> {
            match item {
                TopItem::Record(record) => record.name.as_ref(),
                TopItem::Typedef(typedef) => Some(&typedef.name),
                TopItem::Enum(one) => one.name.as_ref(),
                _ => None,
            }
        }
        self.items.iter().filter_map(name).map(|name| name.text.as_str())
    }
}

/// An item at the top level of a file.
#[derive(Clone, Debug)]
pub enum TopItem {
    /// `import "path.cnp"`
    Import(Import),
    /// A struct or union definition.
    Record(Record),
    /// `typedef T name;`
    Typedef(Typedef),
    /// `enum [name] { A, B = 3 };`
    Enum(Enum),
    /// `const T name = value;`
    Const(Declaration),
    /// A function.
    Function(Function),
    /// An element.
    Element(Element),
    /// A group of elements with ports of its own.
    Group(Group),
    /// A statement of the configuration.
    Config(ConfigStatement),
}

/// A name and its location.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Source location.
    pub span: Span,
}

/// `import "path"`
#[derive(Clone, Debug)]
pub struct Import {
    /// Path, relative to the importing file, otherwise to the library.
    pub path: String,
    /// Source location.
    pub span: Span,
}

/// `struct name { ... }` or `union name { ... }`
#[derive(Clone, Debug)]
pub struct Record {
    /// Absent for a record written inside another declaration.
    pub name: Option<Name>,
    /// Whether members overlap.
    pub is_union: bool,
    /// Members, one declarator each.
    pub members: Vec<Declaration>,
    /// Source location.
    pub span: Span,
}

/// `typedef T name;`
#[derive(Clone, Debug)]
pub struct Typedef {
    /// The new name.
    pub name: Name,
    /// The type it stands for.
    pub ty: TypeExpr,
    /// Array dimensions after the name, outermost first.
    pub dimensions: Vec<Option<Expr>>,
}

/// `enum name { A, B = 3 }`
#[derive(Clone, Debug)]
pub struct Enum {
    /// Name of the type, which is `uint`.
    pub name: Option<Name>,
    /// Names and their values, if specified.
    pub variants: Vec<(Name, Option<Expr>)>,
}

/// A declaration of one variable; `int a, b;` becomes two.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// `register`, `local`, `global`, or none.
    pub place: Option<MemoryQualifier>,
    /// `lru`, `lpm` or `array` before `table`.
    pub table_kind: Option<Name>,
    /// Whether it was written `const`.
    pub is_const: bool,
    /// Type without array dimensions.
    pub ty: TypeExpr,
    /// Its name; absent for an anonymous struct or union member.
    pub name: Option<Name>,
    /// Array dimensions, outermost first; `None` for `[]`, whose size the initialiser determines.
    pub dimensions: Vec<Option<Expr>>,
    /// `: width` of a bit field.
    pub bit_width: Option<Expr>,
    /// `= value`.
    pub init: Option<Expr>,
    /// Location of the whole declaration.
    pub span: Span,
}

/// A memory qualifier (ClickNP 2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryQualifier {
    /// `register`
    Register,
    /// `local`
    Local,
    /// `global`
    Global,
}

/// A type as written.
#[derive(Clone, Debug)]
pub struct TypeExpr {
    /// The type without pointers.
    pub kind: TypeKind,
    /// Number of `*`.
    pub pointers: u32,
    /// Source location.
    pub span: Span,
}

/// The kinds of type expression.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// A name: `uint`, `uint1024`, `flit`, `Header`, a template parameter; with arguments, if any.
    Named(String, Vec<TemplateArg>),
    /// `uint##T`: a name formed at compile time from a prefix and a constant.
    Pasted(String, Box<Expr>),
    /// A record defined in place.
    Record(Box<Record>),
    /// A bit-precise integer. `table<Key, Value>`, `packet<128>` and `void` are `Named` instead.
    Bits {
        /// `int<N>` or `uint<N>`.
        signed: bool,
        /// N.
        width: Box<Expr>,
    },
}

/// An argument between `<` and `>`.
#[derive(Clone, Debug)]
pub enum TemplateArg {
    /// A type. A lone name is parsed as an expression; the checker decides.
    Type(TypeExpr),
    /// A constant.
    Value(Expr),
}

/// A compile-time parameter of an element, a group or a template function.
#[derive(Clone, Debug)]
pub struct TemplateParam {
    /// `uint N`: the type of the constant. Absent for `template <T>`, which is a type or a
    /// constant.
    pub ty: Option<TypeExpr>,
    /// Its name.
    pub name: Name,
    /// `= default`.
    pub default: Option<TemplateArg>,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// `template <...>`.
    pub template: Vec<TemplateParam>,
    /// Whether it was written `inline`.
    pub is_inline: bool,
    /// Result type; the type named `void` for no result.
    pub result: TypeExpr,
    /// Its name.
    pub name: Name,
    /// Parameters; they may have `dimensions`.
    pub params: Vec<Declaration>,
    /// Its body.
    pub body: Block,
    /// Location of the head.
    pub span: Span,
}

/// An element.
#[derive(Clone, Debug)]
pub struct Element {
    /// Text of the `/** ... */` block right before it, without the comment marks.
    pub manual: Option<String>,
    /// Its name.
    pub name: Name,
    /// `<uint N = 2, ...>`.
    pub params: Vec<TemplateParam>,
    /// Ports before `->`.
    pub inputs: Vec<Port>,
    /// Ports after `->`.
    pub outputs: Vec<Port>,
    /// `await all` after the ports.
    pub await_all: bool,
    /// `interval N` after the ports.
    pub interval: Option<Expr>,
    /// Sections and functions, in order.
    pub sections: Vec<Section>,
    /// Location of the head.
    pub span: Span,
}

/// A port, or an array of them.
#[derive(Clone, Debug)]
pub struct Port {
    /// `flit`, `packet`, or a data type.
    pub ty: TypeExpr,
    /// Its name.
    pub name: Name,
    /// `[N]`: N ports named `name[0]` and so on.
    pub count: Option<Expr>,
}

/// A part of an element.
#[derive(Clone, Debug)]
pub enum Section {
    /// `.state { declarations }`
    State(Vec<Declaration>, Span),
    /// `.init { statements }`
    Init(Block, Span),
    /// `.handler { statements }`
    Handler(Block, Span),
    /// `.signal { statements }`
    Signal(Block, Span),
    /// `.method T name(params) { statements }`
    Method(Function),
    /// A function that may use the element's state.
    Function(Function),
}

/// Statements between braces.
#[derive(Clone, Debug)]
pub struct Block {
    /// Statements in order.
    pub statements: Vec<Statement>,
    /// Location, including the braces.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Kind of statement.
    pub kind: StatementKind,
    /// Source location.
    pub span: Span,
}

/// The kinds of statement.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// An empty statement: `;`
    Empty,
    /// Variables; several for `int a, b;`.
    Declare(Vec<Declaration>),
    /// An expression evaluated for its effect.
    Expr(Expr),
    /// `{ ... }`
    Block(Block),
    /// `if (cond) then else otherwise`
    If(Expr, Box<Statement>, Option<Box<Statement>>),
    /// A loop, with the pragmas before it.
    Loop(Box<Loop>),
    /// `switch (value) { ... }`
    Switch(Expr, Vec<SwitchArm>),
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return value;`
    Return(Option<Expr>),
    /// `async { ... }` or `.async { ... }`
    Async(Block),
    /// A `#pragma` that is not followed by a loop.
    Pragma(Pragma),
}

/// The labels of one arm of a switch, and the statements up to the next label.
#[derive(Clone, Debug)]
pub struct SwitchArm {
    /// `case value:`, or none for `default:`; several labels in a row share the statements.
    pub labels: Vec<(Option<Expr>, Span)>,
    /// Statements; control falls through to the next arm unless they end with `break`.
    pub statements: Vec<Statement>,
}

/// `for`, `while` or `do`.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Pragmas right before it.
    pub pragmas: Vec<Pragma>,
    /// Kind of loop.
    pub kind: LoopKind,
    /// The condition; absent means true.
    pub cond: Option<Expr>,
    /// Body.
    pub body: Statement,
    /// Location of the head.
    pub span: Span,
}

/// The kinds of loop.
#[derive(Clone, Debug)]
pub enum LoopKind {
    /// `for (init; cond; step) body`
    For {
        /// A declaration, an expression, or empty.
        init: Option<Box<Statement>>,
        /// Expression evaluated after each iteration.
        step: Option<Expr>,
    },
    /// `while (cond) body`
    While,
    /// `do body while (cond);`
    DoWhile,
}

/// A pragma.
#[derive(Clone, Debug)]
pub struct Pragma {
    /// Kind of pragma.
    pub kind: PragmaKind,
    /// Source location.
    pub span: Span,
}

/// The kinds of pragma (ClickNP 2.8; spellings beyond `unroll` and `ivdep` are ours).
#[derive(Clone, Debug)]
pub enum PragmaKind {
    /// `#pragma unroll` or `#pragma unroll N`
    Unroll(Option<Expr>),
    /// `#pragma flatten`
    Flatten,
    /// `#pragma bound N`
    Bound(Expr),
    /// `#pragma ivdep`
    Ivdep,
    /// `#pragma breakpoint ["name"]`
    Breakpoint(Option<String>),
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Kind of expression.
    pub kind: ExprKind,
    /// Source location.
    pub span: Span,
}

/// The kinds of expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A number, with the letters of its suffix in lower case (`u`, `l`, `ul`, ...).
    Number(BigUint, String),
    /// `true` or `false`
    Bool(bool),
    /// `'c'`
    Char(u8),
    /// `"text"`, escapes resolved.
    Text(String),
    /// `192.168.0.1`, as a 32-bit number whose highest byte is the first written.
    Ipv4(u32),
    /// `02:00:00:00:00:01`, as a 48-bit number whose highest byte is the first written.
    Mac(u64),
    /// A name, with template arguments if given.
    Name(String, Vec<TemplateArg>),
    /// A prefix operator and its operand.
    Unary(UnaryOperator, Box<Expr>),
    /// A binary operator and its operands; `&&` and `||` evaluate the second only if needed.
    Binary(BinaryOperator, Box<Expr>, Box<Expr>),
    /// `target = value`, or `target op= value`.
    Assign(Option<BinaryOperator>, Box<Expr>, Box<Expr>),
    /// `++x`, `x++`, `--x`, `x--`.
    Step {
        /// Whether it increments or decrements.
        increment: bool,
        /// Whether the operator precedes the operand, so that the result is the new value.
        prefix: bool,
        /// Operand to change.
        target: Box<Expr>,
    },
    /// `cond ? a : b`
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `f(args)`; template arguments are in the name.
    Call(Name, Vec<TemplateArg>, Vec<Expr>),
    /// `table.lookup(args)`
    MethodCall(Box<Expr>, Name, Vec<Expr>),
    /// `a[i]`: an element of an array, or a bit of an integer.
    Index(Box<Expr>, Box<Expr>),
    /// `v[hi:lo]`
    Slice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `a.b` (`through_pointer` false) or `a->b` (true).
    Member {
        /// Operand.
        of: Box<Expr>,
        /// Name of the member.
        member: Name,
        /// Whether `of` is a pointer.
        through_pointer: bool,
    },
    /// `(T) value`
    Cast(TypeExpr, Box<Expr>),
    /// `sizeof(T)`
    SizeofType(TypeExpr),
    /// `sizeof value`
    SizeofExpr(Box<Expr>),
    /// `{ a, b, .c = d }`
    List(Vec<(Option<Name>, Expr)>),
    /// `a, b`
    Comma(Box<Expr>, Box<Expr>),
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `~`
    BitNot,
    /// `!`
    Not,
    /// `*`
    Dereference,
    /// `&`
    AddressOf,
}

/// Binary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are C's operators")]
pub enum BinaryOperator {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    And,
    Or,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A group: a part of a graph with ports of its own, instantiated as a whole.
#[derive(Clone, Debug)]
pub struct Group {
    /// Text of the `/** ... */` block right before it.
    pub manual: Option<String>,
    /// Its name.
    pub name: Name,
    /// `<uint N = 2, ...>`.
    pub params: Vec<TemplateParam>,
    /// Ports before `->`.
    pub inputs: Vec<Port>,
    /// Ports after `->`.
    pub outputs: Vec<Port>,
    /// Declarations and connections; `begin` and `end` are its own ports.
    pub statements: Vec<ConfigStatement>,
    /// Location of the head.
    pub span: Span,
}

/// A statement of the configuration.
#[derive(Clone, Debug)]
pub enum ConfigStatement {
    /// `[host|verilog] Type<args> :: name[N] [@]`
    Declare(InstanceDeclaration),
    /// `a [1] -> b -> [2] c`
    Connect(Connection),
    /// `.manager { ... }`: an element without ports or handler. In a group it has the group's
    /// parameters.
    Manager(Box<Element>),
}

/// A declaration of an instance, or of an array of them.
#[derive(Clone, Debug)]
pub struct InstanceDeclaration {
    /// `host` before it.
    pub host: bool,
    /// `verilog` before it.
    pub verilog: bool,
    /// Element or group; for a program of an object, the path of the object file.
    pub element: Name,
    /// `xdp "path"` before it, instead of an element.
    pub object: Option<Box<ObjectProgram>>,
    /// Its compile-time arguments, `name = value` or by position.
    pub args: Vec<(Option<Name>, TemplateArg)>,
    /// The instance's name.
    pub name: Name,
    /// `#N`: number of copies, named `name#1` and so on (generated replication).
    pub count: Option<Expr>,
    /// `@` after it.
    pub controlled: bool,
    /// Location of the whole declaration.
    pub span: Span,
}

/// `xdp "path" [program]`: a program of an object file as an element.
#[derive(Clone, Debug)]
pub struct ObjectProgram {
    /// Path of the object file, relative to the file that names it.
    pub path: Name,
    /// Name of its program, if the object contains several.
    pub program: Option<Name>,
}

/// A chain of connections: two nodes or more.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The nodes, in order.
    pub nodes: Vec<ConfigNode>,
    /// Options in braces after each `->`; one fewer than nodes.
    pub edges: Vec<EdgeOptions>,
}

/// An instance in a chain, with its input and output ports.
#[derive(Clone, Debug)]
pub struct ConfigNode {
    /// `[port]` before the name.
    pub input: Option<PortSelector>,
    /// The instance, endpoint, `begin` or `end`.
    pub name: Name,
    /// `#k`: index in an array of instances, from 1.
    pub copy: Option<Expr>,
    /// `[port]` after the name.
    pub output: Option<PortSelector>,
}

/// Selection of a port.
#[derive(Clone, Debug)]
pub enum PortSelector {
    /// By number, from 1.
    Number(Expr),
    /// By name.
    Name(Name),
}

/// `{depth = 64, lossy}` after an arrow.
#[derive(Clone, Debug, Default)]
pub struct EdgeOptions {
    /// Items the channel holds.
    pub depth: Option<Expr>,
    /// Whether it drops items when full, instead of blocking the writer.
    pub lossy: bool,
    /// Location of the arrow.
    pub span: Span,
}
