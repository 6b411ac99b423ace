/// A family of parts that one key of a scenario chooses among: one row for each part.
///
/// From the rows come the parameters as an enum, the parts as an enum, the table of the catalogue, how a part is
/// built, whether one has given parameters, and a macro `dispatch` that evaluates an expression for the part at
/// hand. A new part is its file, its `mod` line and a row:
///
/// ```text
/// Variant(its type, its parameters), [its entries => default policy], |params, context| how it is built;
/// ```
///
/// Parameters have `from_args(&EntryArgs)`. A part keeps them in a field `params`; the row of one that does not
/// ends with `same |part, params| condition`.
macro_rules! family {
    (
        $d:tt $dispatch:ident
        $(#[$params_doc:meta])* params $params:ident;
        $(#[$any_doc:meta])* any $any:ident $(<$packet:ident>)?;
        $(#[$table_doc:meta])* table $table:ident;
        context $context:ty;
        $(
            $variant:ident($type:ty, $own:ty), [$($entry:path $(=> $policy:path)?),*],
            |$own_params:ident, $place:ident| $new:expr
            $(, same |$part:ident, $asked:ident| $same:expr)?;
        )+
    ) => {
        $(#[$params_doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $params {
            $(#[doc = concat!("[`", stringify!($own), "`].")] $variant($own),)+
        }

        $(#[$any_doc])*
        #[derive(Debug)]
        pub enum $any $(<$packet>)? {
            $(#[doc = concat!("[`", stringify!($type), "`].")] $variant($type),)+
        }

        $(#[$table_doc])*
        pub static $table: &[Known<$params>] = &[$($(
            Known {
                entry: &$entry,
                read: |args| <$own>::from_args(args).map($params::$variant),
                default_policy: [$(Some(&$policy),)? None][0],
            },
        )*)+];

        impl $(<$packet: Packet>)? $any $(<$packet>)? {
            pub(crate) fn new(params: &$params, context: $context) -> Self {
                match params {
                    $($params::$variant($own_params) => {
                        let $place = context;
                        Self::$variant($new)
                    })+
                }
            }

            /// As [`Discipline::has_params`](crate::system::Discipline::has_params).
            #[allow(dead_code, reason = "markers are not read back")]
            pub(crate) fn has_params(&self, params: &$params) -> bool {
                match (self, params) {
                    $((Self::$variant(part), $params::$variant(params)) => {
                        family!(@same part params $(, $part $asked $same)?)
                    })+
                    #[allow(unreachable_patterns, reason = "a family of one")]
                    _ => false,
                }
            }
        }

        /// The same expression for each variant.
        macro_rules! $dispatch {
            ($d any:expr, $d it:ident => $d body:expr) => {
                match $d any {
                    $($any::$variant($d it) => $d body,)+
                }
            };
        }
    };
    (@same $found:ident $wanted:ident) => { $found.params == *$wanted };
    (@same $found:ident $wanted:ident, $part:ident $asked:ident $same:expr) => {{
        let ($part, $asked) = ($found, $wanted);
        $same
    }};
}
