//go:build linux || darwin

package app

import "syscall"

// diskSpace is what the disk under a folder has for us, and its size.
func diskSpace(dir string) (free, size uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}
