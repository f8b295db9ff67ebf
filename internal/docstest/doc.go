// Package docstest runs what the documentation says: YAML in it is parsed by the package that reads such files, SQL
// runs against the schema, commands and addresses exist, links lead somewhere, and the reference of rules is what the
// code says. A block's fence names what it is:
//
//	```yaml rules      one of: rules, pipeline, catalogue, routes, config
//	```yaml tests F    file F with tests of rules: runs on the rules and routes shown before, prints the text shown after
//	```sql             runs against a migrated, empty database
//	```shell           lines of `tocsin`, `make`, `curl`; others are not looked at
//	```text            is not looked at
//
// It has no code that runs in Tocsin.
package docstest
