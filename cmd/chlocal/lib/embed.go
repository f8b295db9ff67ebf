// Package lib pins libchdb, the ClickHouse engine that chlocal serves: a package.json with exact versions, the lockfile
// with their checksums, and the npm setting that keeps registry hosts out of the lockfile. internal/chlocal installs
// from these files; nothing else reads them.
package lib

import "embed"

// Files holds package.json, package-lock.json and .npmrc, as `npm ci` wants them in one folder.
//
//go:embed package.json package-lock.json .npmrc
var Files embed.FS
