//! Columns of tables, and the macro that declares a table.

use serde::Serialize;

use crate::units::round6;

/// A row of a table.
pub trait Row: Serialize + Sized {
    /// The name of the table, and of its CSV file before `.csv`.
    const TABLE: &'static str;
    /// The columns, in the order of the fields.
    const COLUMNS: &'static [Column];

    /// The cells of the row, in the order of [`COLUMNS`](Self::COLUMNS).
    fn cells(&self) -> Vec<Cell<'_>>;

    /// The row with these cells; `None` unless there are as many as columns, each of its kind.
    fn of_cells(cells: &[Cell<'_>]) -> Option<Self>;
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name of the field.
    pub name: &'static str,
    /// The unit, for example `Mb/s`; empty for names, flags and ratios.
    pub unit: &'static str,
    /// The type of its cells.
    pub kind: Kind,
    /// Whether cells may be missing.
    pub optional: bool,
    /// The definition.
    pub doc: &'static str,
}

/// The type of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name.
    Text,
    /// A whole number from 0.
    Integer,
    /// A real number.
    Number,
    /// True or false.
    Flag,
}

/// One cell of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A name.
    Text(&'a str),
    /// A whole number from 0.
    Integer(u64),
    /// A real number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// There was nothing to measure.
    Missing,
}

impl Cell<'_> {
    /// The cell as a number; none for names, flags and missing cells.
    pub(crate) fn number(self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(number as f64),
            Self::Number(number) => Some(number),
            Self::Text(_) | Self::Flag(_) | Self::Missing => None,
        }
    }
}

/// A type of fields of rows.
pub(crate) trait Field: Sized {
    const KIND: Kind;
    const OPTIONAL: bool = false;
    fn cell(&self) -> Cell<'_>;
    fn of_cell(cell: Cell<'_>) -> Option<Self>;
    /// The value rounded as in tables.
    fn rounded(self) -> Self {
        self
    }
}

impl Field for String {
    const KIND: Kind = Kind::Text;
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self)
    }
    fn of_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Text(text) => Some(text.to_owned()),
            _ => None,
        }
    }
}

impl Field for u64 {
    const KIND: Kind = Kind::Integer;
    fn cell(&self) -> Cell<'_> {
        Cell::Integer(*self)
    }
    fn of_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Integer(number) => Some(number),
            _ => None,
        }
    }
}

impl Field for f64 {
    const KIND: Kind = Kind::Number;
    fn cell(&self) -> Cell<'_> {
        Cell::Number(*self)
    }
    fn of_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Number(number) => Some(number),
            _ => None,
        }
    }
    fn rounded(self) -> Self {
        round6(self)
    }
}

impl Field for bool {
    const KIND: Kind = Kind::Flag;
    fn cell(&self) -> Cell<'_> {
        Cell::Flag(*self)
    }
    fn of_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Flag(flag) => Some(flag),
            _ => None,
        }
    }
}

impl<T: Field> Field for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Missing, Field::cell)
    }
    fn of_cell(cell: Cell<'_>) -> Option<Self> {
        if cell == Cell::Missing { Some(None) } else { T::of_cell(cell).map(Some) }
    }
    fn rounded(self) -> Self {
        self.map(T::rounded)
    }
}

/// Declares a table: name, type, unit and doc of each column, and its computation from a source,
/// `from Source as name`: as a function with the name of the column, and, after [`round6`], as the cell of
/// the row.
macro_rules! row {
    ($(#[$meta:meta])* $name:ident of $table:literal from $source:ty as $of:ident {
        $($(#[doc = $doc:literal])* $field:ident: $type:ty, $unit:literal = $measured:expr;)*
    }) => {
        row! { $(#[$meta])* $name of $table { $($(#[doc = $doc])* $field: $type, $unit;)* } }
        impl $name {
            $(pub(crate) fn $field($of: &$source) -> $type { $measured })*
            fn measured(of: &$source) -> Self {
                Self { $($field: Self::$field(of).rounded(),)* }
            }
        }
    };
    ($(#[$meta:meta])* $name:ident of $table:literal {
        $($(#[doc = $doc:literal])* $field:ident: $type:ty, $unit:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct $name { $($(#[doc = $doc])* pub $field: $type,)* }
        impl Row for $name {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [Column] = &[$(Column {
                name: stringify!($field),
                unit: $unit,
                kind: <$type as Field>::KIND,
                optional: <$type as Field>::OPTIONAL,
                doc: concat!($($doc),*),
            }),*];
            fn cells(&self) -> Vec<Cell<'_>> {
                vec![$(self.$field.cell()),*]
            }
            fn of_cells(cells: &[Cell<'_>]) -> Option<Self> {
                let mut cells = cells.iter();
                let row = Self { $($field: <$type as Field>::of_cell(*cells.next()?)?,)* };
                cells.next().is_none().then_some(row)
            }
        }
    };
}

macro_rules! drops {
    ($row:ident from $source:ty) => {
        impl $row {
            /// Packets of the source dropped for this reason.
            pub(crate) fn drops_at(of: &$source, reason: DropReason) -> u64 {
                drops(&of.outcome.dropped, reason)
            }

            /// Packets dropped for this reason.
            #[must_use]
            pub const fn drops_by(&self, reason: DropReason) -> u64 {
                match reason {
                    DropReason::Early => self.drops_early,
                    DropReason::Forced => self.drops_forced,
                    DropReason::Overflow => self.drops_overflow,
                    DropReason::Policy => self.drops_policy,
                    DropReason::PushOut => self.drops_push_out,
                }
            }

            /// Packets dropped for any reason. Saturates, because a file can hold any numbers.
            #[must_use]
            pub fn drops(&self) -> u64 {
                DropReason::ALL.iter().fold(0, |sum, reason| sum.saturating_add(self.drops_by(*reason)))
            }
        }
    };
}
