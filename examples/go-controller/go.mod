module example.com/controller

go 1.22
