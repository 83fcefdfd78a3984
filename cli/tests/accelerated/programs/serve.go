// SPDX-License-Identifier: Apache-2.0 OR MIT

// A file server, and a client that downloads a file repeatedly and compares it.
package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	role, port, folder := os.Args[1], os.Args[2], os.Args[3]
	if role == "serve" {
		log.Fatal(http.ListenAndServe("127.0.0.1:"+port, http.FileServer(http.Dir(folder))))
	}
	sent, err := os.ReadFile(folder + "/1048576")
	if err != nil {
		log.Fatal(err)
	}
	for i := 0; i < 50; i++ {
		answer, err := http.Get("http://127.0.0.1:" + port + "/1048576")
		if err != nil {
			log.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		if err != nil || !bytes.Equal(got, sent) {
			log.Fatal("it has changed: ", err)
		}
		answer.Body.Close()
	}
}
