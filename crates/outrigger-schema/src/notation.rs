//! The notation of schemas.

/// Writes a [`Schema`](crate::Schema): `{a: T, b?: T}` is an object, `{T}` a map, `[T]` a list, `[T, T]` a list of two,
/// `A | B` one of several, `"word"` that word, `1..=9` and `1..` whole numbers (in parentheses where another one follows), and `any`, `null`, `boolean`, `true`, `false`, `string`, `number` and `integer`
/// what they say. Any other name is a constant of this type. Comments of members (`///`) are kept;
/// `#[alias = "word"]` after them is another name of the member.
#[macro_export]
macro_rules! schema {
    (any) => { $crate::Schema::Any };
    (null) => { $crate::Schema::Null };
    (boolean) => { $crate::Schema::Boolean };
    (true) => { $crate::Schema::Exactly(true) };
    (false) => { $crate::Schema::Exactly(false) };
    (string) => { $crate::Schema::String };
    (number) => { $crate::Schema::Number };
    (integer) => { $crate::ANY_INTEGER };
    ({}) => { $crate::Schema::Object(&[]) };
    ({ $($inside:tt)+ }) => { $crate::schema!(@braces [] $($inside)+) };
    ([ $first:tt, $second:tt ]) => {
        $crate::Schema::Pair(&$crate::schema!($first), &$crate::schema!($second))
    };
    ([ $($item:tt)+ ]) => { $crate::Schema::List(&$crate::schema!($($item)+)) };
    (( $($inner:tt)+ )) => { $crate::schema!($($inner)+) };
    ($min:literal ..= $max:literal) => { $crate::Schema::Integer { min: $min, max: $max } };
    ($min:literal ..) => { $crate::Schema::Integer { min: $min, max: i64::MAX } };
    ($($word:literal)|+) => { $crate::Schema::Word(&[$($word),+]) };
    ($name:ident) => { $crate::Schema::Of(&$name) };
    ($($one:tt)|+) => { $crate::Schema::AnyOf(&[$($crate::schema!($one)),+]) };

    // Consecutive members; otherwise the schema of all values.
    (@braces [$($done:tt)*]) => { $crate::Schema::Object(&[$($done)*]) };
    (@braces [$($done:tt)*]
        $(#[doc = $doc:literal])* $(#[alias = $alias:literal])* $name:ident ? : $($one:tt)|+ $(, $($rest:tt)*)?) => {
        $crate::schema!(@braces [$($done)*
            $crate::schema!(@field false [$($doc),*] [$($alias),*] [stringify!($name)] $($one)|+),] $($($rest)*)?)
    };
    (@braces [$($done:tt)*]
        $(#[doc = $doc:literal])* $(#[alias = $alias:literal])* $name:ident : $($one:tt)|+ $(, $($rest:tt)*)?) => {
        $crate::schema!(@braces [$($done)*
            $crate::schema!(@field true [$($doc),*] [$($alias),*] [stringify!($name)] $($one)|+),] $($($rest)*)?)
    };
    (@braces [$($done:tt)*]
        $(#[doc = $doc:literal])* $(#[alias = $alias:literal])* $name:literal ? : $($one:tt)|+ $(, $($rest:tt)*)?) => {
        $crate::schema!(@braces [$($done)*
            $crate::schema!(@field false [$($doc),*] [$($alias),*] [$name] $($one)|+),] $($($rest)*)?)
    };
    (@braces [$($done:tt)*]
        $(#[doc = $doc:literal])* $(#[alias = $alias:literal])* $name:literal : $($one:tt)|+ $(, $($rest:tt)*)?) => {
        $crate::schema!(@braces [$($done)*
            $crate::schema!(@field true [$($doc),*] [$($alias),*] [$name] $($one)|+),] $($($rest)*)?)
    };
    (@braces [] $($one:tt)|+) => { $crate::Schema::Map(&$crate::schema!($($one)|+)) };
    (@field $required:literal [$($doc:literal),*] [$($alias:literal),*] [$name:expr] $($one:tt)|+) => {
        $crate::Field {
            name: $name,
            schema: $crate::schema!($($one)|+),
            required: $required,
            doc: &[$($doc),*],
            aliases: &[$($alias),*],
        }
    };
}
