// Package strictyaml reads configuration files so that a mistake in one of them is found when the file is read, with
// its place, and not at three in the morning. Unknown and duplicate keys, wrong types, nulls, second documents and
// missing required fields are refused; every mistake of a file is reported, not only the first, each as
// file:line:column with a hint where one can be given.
//
// It decodes into plain structs with yaml tags. A type that needs more implements Unmarshaler, or, for a closed set of
// words, encoding.TextUnmarshaler (see Enum). Positions outlive decoding for the lints which run later: a struct may
// have a field of type Pos or Positions with the tag yaml:"-", and any value may be wrapped in Located.
//
// It is not a general YAML library: it never writes files and knows nothing of what a configuration means. It is used
// by catalogue, rule, pipeline and the configuration structs of all packages.
package strictyaml
